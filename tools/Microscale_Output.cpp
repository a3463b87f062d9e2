#include <fcntl.h>
#include <Microscale_Errors.hpp>
#include <Microscale_Output.hpp>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace microscale::tools {
namespace fs = std::filesystem;
namespace {

/// What is to be removed if the program ends early. The mutex is held whenever a file or folder is created or renamed,
/// so that a signal finds an output either unfinished or done, and nothing is added to what it removes.
struct Unfinished {
  std::mutex mutex;
  std::set<fs::path> paths;
};

Unfinished& unfinished() {
  static Unfinished instance;
  return instance;
}

pthread_t cleaner;

void remove_unfinished() {
  for (const auto& path : unfinished().paths) {
    std::error_code error;
    fs::remove_all(path, error);
  }
}

void wait_for_signals(sigset_t signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  const std::lock_guard lock(unfinished().mutex);
  remove_unfinished();
  if (signal == SIGUSR1) {
    const char message[] = "microscale: an input file became shorter while it was read\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message, sizeof(message) - 1);
    ::_exit(1);
  }
  ::_exit(128 + signal);
}

/// The access cannot succeed and must not return: the cleaner ends the program.
void on_bus_error(int) {
  pthread_kill(cleaner, SIGUSR1);
  for (;;) ::pause();
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw_errno(folder.string(), "cannot open");
  // Some file systems cannot sync a folder (EINVAL), and then there is nothing to be done.
  const bool good = ::fsync(fd) == 0 || errno == EINVAL;
  const int error = errno;
  ::close(fd);
  errno = error;
  if (!good) throw_errno(folder.string(), "cannot write to disk");
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// Throws unless the folder is certainly an older model: it is empty, or has weights and only plain files of these
/// names.
void check_replaceable(const fs::path& folder, const std::set<std::string>& names) {
  std::set<std::string> in_the_way;
  bool empty = true, weights = false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    empty = false;
    weights = weights || entry.path().extension() == ".safetensors";
    const std::string name = entry.path().filename().string();
    if (!fs::is_regular_file(entry.symlink_status()) || !names.contains(name)) in_the_way.insert(name);
  }
  if (!in_the_way.empty())
    throw FileError(folder.string(), "is not replaced: it holds \"" + printable(*in_the_way.begin()) +
                                         "\", which is no file of the new model");
  if (!empty && !weights) throw FileError(folder.string(), "is not replaced: it holds no .safetensors file");
}

}  // namespace

void clean_up_on_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  unfinished();
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1}) {
    struct sigaction action {};
    // What the caller has told us to ignore (nohup does) stays ignored; blocked and waited for, it would not be.
    if (sigaction(signal, nullptr, &action) == 0 && (action.sa_handler != SIG_IGN || signal == SIGUSR1))
      sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread thread(wait_for_signals, signals);
  cleaner = thread.native_handle();
  thread.detach();
  std::signal(SIGBUS, on_bus_error);
}

int create_file(const fs::path& path) {
  const std::lock_guard lock(unfinished().mutex);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) throw_errno(path.string(), "cannot create");
  return fd;
}

void create_folder(const fs::path& path) {
  const std::lock_guard lock(unfinished().mutex);
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) throw_errno(path.string(), "cannot create");
}

AtomicOutput::AtomicOutput(const fs::path& path, Kind kind, bool force, std::set<std::string> replaceable)
    : m_path(path), m_kind(kind), m_force(force), m_replaceable(std::move(replaceable)) {
  // "out/" is the folder "out", and its temporary name is beside it, not in it.
  if (!m_path.has_filename()) m_path = m_path.parent_path();
  const std::string text = m_path.string();
  if (!m_path.has_filename() || m_path.filename() == "." || m_path.filename() == "..")
    throw FileError(text.empty() ? path.string() : text, "is no name for an output");
  const auto status = fs::status(m_path);
  if (fs::exists(status)) {
    if (kind == Kind::file && !fs::is_regular_file(status)) throw FileError(text, "exists and is not a file");
    if (kind == Kind::folder && !fs::is_directory(status)) throw FileError(text, "exists and is not a folder");
    if (!force) throw FileError(text, "exists already (--force replaces it)");
    if (kind == Kind::folder) check_replaceable(m_path, m_replaceable);
  }
  const auto folder = parent_of(m_path);
  if (!fs::is_directory(folder)) throw FileError(folder.string(), "is no folder to write to");
  std::string workplace = (folder / ".microscale-XXXXXX").string();
  const std::lock_guard lock(unfinished().mutex);
  if (::mkdtemp(workplace.data()) == nullptr) throw_errno(text, "cannot create");
  m_workplace = workplace;
  m_temporary = m_workplace / m_path.filename();
  unfinished().paths.insert(m_workplace);
  if (kind == Kind::folder && ::mkdir(m_temporary.c_str(), 0777) != 0) {
    const int error = errno;
    unfinished().paths.erase(m_workplace);
    ::rmdir(m_workplace.c_str());
    errno = error;
    throw_errno(text, "cannot create");
  }
}

AtomicOutput::~AtomicOutput() {
  const std::lock_guard lock(unfinished().mutex);
  std::error_code error;
  fs::remove_all(m_workplace, error);
  unfinished().paths.erase(m_workplace);
}

void AtomicOutput::fill(const std::function<void(const fs::path&)>& write) const {
  try {
    write(m_temporary);
  } catch (const FileError& error) {
    const fs::path path = error.path();
    const auto relative = path.lexically_relative(m_temporary);
    if (relative.empty() || *relative.begin() == "..") throw;
    throw FileError((relative == "." ? m_path : m_path / relative).string(), error.reason());
  }
}

void AtomicOutput::commit() {
  if (m_kind == Kind::folder) fill([](const fs::path& folder) { sync_folder(folder); });
  std::unique_lock lock(unfinished().mutex);
  // A name that was free when the output was begun may be taken by now.
  int failed = ::renameat2(AT_FDCWD, m_temporary.c_str(), AT_FDCWD, m_path.c_str(), RENAME_NOREPLACE);
  if (failed != 0 && errno == EEXIST && m_force) {
    // rename() replaces a file, but no folder that holds something. What is replaced goes with the workplace.
    if (m_kind == Kind::folder) check_replaceable(m_path, m_replaceable);
    failed = ::renameat2(AT_FDCWD, m_temporary.c_str(), AT_FDCWD, m_path.c_str(),
                         m_kind == Kind::folder ? RENAME_EXCHANGE : 0);
  } else if (failed != 0 && errno == EINVAL && (m_force || !fs::exists(m_path))) {
    // The file system knows no flags.
    failed = ::rename(m_temporary.c_str(), m_path.c_str());
  }
  if (failed != 0) throw_errno(m_path.string(), "cannot be given its name");
  lock.unlock();
  sync_folder(parent_of(m_path));
}

struct Background::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::function<void()>> job;
  std::exception_ptr error;
  bool busy = false;
  bool stop = false;
  std::thread thread;

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stop || job; });
      if (stop) return;
      const auto work = std::move(*job);
      job.reset();
      busy = true;
      changed.notify_all();
      lock.unlock();
      std::exception_ptr thrown;
      try {
        if (!error) work();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown && !error) error = thrown;
      busy = false;
      changed.notify_all();
    }
  }

  void rethrow() const {
    if (error) std::rethrow_exception(error);
  }
};

Background::Background() : m_state(std::make_unique<State>()) {
  m_state->thread = std::thread([state = m_state.get()] { state->loop(); });
}

Background::~Background() {
  {
    const std::lock_guard lock(m_state->mutex);
    m_state->stop = true;
    m_state->changed.notify_all();
  }
  m_state->thread.join();
}

void Background::run(std::function<void()> job) {
  std::unique_lock lock(m_state->mutex);
  m_state->changed.wait(lock, [this] { return !m_state->job; });
  m_state->rethrow();
  m_state->job = std::move(job);
  m_state->changed.notify_all();
}

void Background::wait() {
  std::unique_lock lock(m_state->mutex);
  m_state->changed.wait(lock, [this] { return !m_state->job && !m_state->busy; });
  m_state->rethrow();
}

Progress::Progress(std::string what, std::uint64_t total)
    : m_what(std::move(what)), m_total(total), m_visible(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (m_visible && m_permille >= 0) std::fputs("\r\x1b[K", stderr);
}

void Progress::advance(std::uint64_t done, const std::string& name) {
  m_done += done;
  if (!m_visible || m_total == 0) return;
  const double share = std::min(1.0, static_cast<double>(m_done) / static_cast<double>(m_total));
  const int permille = static_cast<int>(share * 1000);
  if (permille == m_permille) return;
  m_permille = permille;
  winsize size{};
  const std::size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  constexpr int cells = 30;
  std::string bar;
  for (int i = 0; i < cells; ++i) bar += i < permille * cells / 1000 ? '#' : '.';
  std::string line = m_what + " [" + bar + "] " + std::to_string(permille / 10) + "% " + printable(name);
  if (line.size() >= columns) line.resize(columns - 1);
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
}

}  // namespace microscale::tools
