#ifndef MICROSCALE_TOOLS_OUTPUT_HPP
#define MICROSCALE_TOOLS_OUTPUT_HPP

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace microscale::tools {

/// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT end the program with status 128 + signal after every unfinished output has been
/// removed, and a read from a mapped file that has shrunk (SIGBUS) end it likewise with status 1 and a message. SIGPIPE
/// and SIGXFSZ become ordinary errors of the write. To be called once, before any other thread is started.
void clean_up_on_signals();

/// Creates a file that must not exist and returns its descriptor, for writing; or makes a folder, which may exist. Not
/// after a signal has begun to remove unfinished outputs, so that nothing is added behind its back. Throw FileError.
int create_file(const std::filesystem::path& path);
void create_folder(const std::filesystem::path& path);

/// An output file or folder that appears under its name complete or not at all: it is written under a temporary name
/// in a hidden folder of its own beside it and renamed by commit(). The destructor removes what was not committed.
class AtomicOutput {
 public:
  enum class Kind : std::uint8_t { file, folder };

  /// Throws FileError if nothing can be created there, if `path` exists and `force` is false, or if it exists as the
  /// other kind. Whatever `force` says, a folder is only replaced if that loses nothing but an older model: it must be
  /// empty, or hold a .safetensors file and nothing but plain files with names in `replaceable`. Makes the folder, not
  /// the file.
  AtomicOutput(const std::filesystem::path& path, Kind kind, bool force, std::set<std::string> replaceable = {});
  AtomicOutput(const AtomicOutput&) = delete;
  AtomicOutput& operator=(const AtomicOutput&) = delete;
  ~AtomicOutput();

  /// Calls write(temporary), which makes the file or fills the folder of that name. A FileError that it throws about
  /// the temporary name is made one about the final name.
  void fill(const std::function<void(const std::filesystem::path&)>& write) const;
  /// Gives the output its name. What is in it must be on the disk already. Throws FileError.
  void commit();

 private:
  std::filesystem::path m_path;
  std::filesystem::path m_workplace;
  std::filesystem::path m_temporary;
  Kind m_kind;
  bool m_force;
  std::set<std::string> m_replaceable;
};

/// Runs jobs one after another on a thread of its own, so that writing overlaps with computing. At most one job waits,
/// which bounds the memory that jobs hold.
class Background {
 public:
  Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  /// Drops jobs that have not started.
  ~Background();

  /// Rethrows what an earlier job threw.
  void run(std::function<void()> job);
  /// Waits for all jobs; rethrows what one threw.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

/// A bar on standard error, if that is a terminal; nothing otherwise.
class Progress {
 public:
  Progress(std::string what, std::uint64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  /// `done` more bytes, of the tensor called `name`.
  void advance(std::uint64_t done, const std::string& name);

 private:
  std::string m_what;
  std::uint64_t m_total;
  std::uint64_t m_done = 0;
  int m_permille = -1;
  bool m_visible;
};

}  // namespace microscale::tools

#endif
