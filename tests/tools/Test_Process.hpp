#ifndef MICROSCALE_TEST_PROCESS_HPP
#define MICROSCALE_TEST_PROCESS_HPP

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <Test_Files.hpp>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

// Programs run as a user runs them: MICROSCALE_TEST_PROGRAM, or another one.
namespace microscale::test {

/// How a program ended.
struct Result {
  int status = 0;  ///< 128 + n if signal n ended it
  std::string out;
  std::string err;
  long max_rss_kb = 0;
};

/// A running program whose output goes to files in a folder of its own.
class Program {
 public:
  /// `file_limit`: bytes that a file may grow to, as a stand-in for a full disk.
  explicit Program(const std::vector<std::string>& arguments, std::optional<rlim_t> file_limit = {},
                   const char* program = MICROSCALE_TEST_PROGRAM) {
    std::vector<char*> argv{const_cast<char*>(program)};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string out = m_folder / "out", err = m_folder / "err";
    m_pid = ::fork();
    if (m_pid == 0) {
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
      ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
      if (file_limit) {
        const rlimit limit{*file_limit, *file_limit};
        ::setrlimit(RLIMIT_FSIZE, &limit);
      }
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  pid_t pid() const { return m_pid; }
  bool running() const {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(m_pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  Result wait() {
    Result result;
    int status = 0;
    rusage usage{};
    while (::wait4(m_pid, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = read_file(m_folder / "out");
    result.err = read_file(m_folder / "err");
    result.max_rss_kb = usage.ru_maxrss;
    return result;
  }

 private:
  TemporaryFolder m_folder;
  pid_t m_pid;
};

inline Result run(const std::vector<std::string>& arguments, std::optional<rlim_t> file_limit = {},
                  const char* program = MICROSCALE_TEST_PROGRAM) {
  return Program(arguments, file_limit, program).wait();
}

/// Runs and expects success.
inline std::string run_well(const std::vector<std::string>& arguments, const char* program = MICROSCALE_TEST_PROGRAM) {
  const Result result = run(arguments, {}, program);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");  // quiet where there is no terminal
  return result.out;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace microscale::test

#endif
