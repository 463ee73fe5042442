#include "peer/launch/launched_processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/descriptor.hpp"
#include "base/signals.hpp"

extern char** environ;

namespace gossamer::peer {
namespace {

/// A longer line of a process is passed on in parts.
constexpr std::size_t kMaxLineBytes = 64 << 10;

/// The time that processes have to end before the launcher says for which it waits.
constexpr std::chrono::seconds kPatience(10);

/// What a process writes, in lines.
struct Output {
  Descriptor from;
  std::string begun;  ///< of a line

  /// Passes complete lines on; at the end of the output the rest too.
  void read(const std::function<void(const std::string&)>& on_line) {
    std::array<char, 1 << 14> buffer;
    const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) from.close();
    else begun.append(buffer.data(), static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = begun.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const bool returns = end > begin && begun[end - 1] == '\r';  // as ssh's messages end
      on_line(begun.substr(begin, end - begin - (returns ? 1 : 0)));
    }
    begun.erase(0, begin);
    if (begun.empty() || (from.is_open() && begun.size() < kMaxLineBytes)) return;
    on_line(begun);
    begun.clear();
  }
};

struct Process {
  pid_t id = -1;
  Descriptor input;
  std::array<Output, 2> outputs;  ///< standard output and error
  int code = -1;                  ///< −1: it runs
};

Error cannot_start(const PlannedProcess& planned, const char* what, int reason) {
  const char* advice = reason == EMFILE  ? kRaiseOpenFiles
                       : reason == E2BIG ? "set net.rendezvous, so that no addresses are passed on"
                                         : "";
  return data_error(fmt::format("{}: cannot {}: {}{}{}", planned.command.front(), what,
                                std::strerror(reason), *advice == 0 ? "" : "; ", advice));
}

/// Between this process and one that it starts.
struct Pipe {
  Descriptor own, childs;

  static Result<Pipe> make(const PlannedProcess& planned, bool to_child) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_start(planned, "make a pipe", errno);
    Pipe pipe{Descriptor(ends[to_child ? 1 : 0]), Descriptor(ends[to_child ? 0 : 1])};
    ::fcntl(pipe.own.get(), F_SETFL, O_NONBLOCK);
    return pipe;
  }
};

/// In a session of its own: the terminal's interrupts reach this process alone, and ssh cannot ask
/// for a password there, of which nothing would be seen.
Result<Process> start(const PlannedProcess& planned) {
  GOSSAMER_TRY(Pipe input, Pipe::make(planned, true));
  GOSSAMER_TRY(Pipe output, Pipe::make(planned, false));
  GOSSAMER_TRY(Pipe error, Pipe::make(planned, false));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const std::array<const Pipe*, 3> pipes{&input, &output, &error};
  for (std::size_t k = 0; k < pipes.size(); ++k)
    ::posix_spawn_file_actions_adddup2(&actions, pipes[k]->childs.get(), static_cast<int>(k));
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::vector<char*> words;
  for (const std::string& word : planned.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Process process;
  const int failure =
      ::posix_spawnp(&process.id, words.front(), &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return cannot_start(planned, "be started", failure);
  process.input = std::move(input.own);
  process.outputs[0].from = std::move(output.own);
  process.outputs[1].from = std::move(error.own);
  return process;
}

class Processes {
 public:
  Processes(const LaunchEvents& events) : events_(events) {
    ::signal(SIGPIPE, SIG_IGN);  // a process may be gone when a line is sent to it
    sigset_t mask;
    ::sigemptyset(&mask);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&mask, signal);
    // A blocked signal reaches signalfd even if it is ignored.
    for (const int signal : {SIGHUP, SIGQUIT})
      if (!is_ignored(signal)) ::sigaddset(&mask, signal);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    signals_ = Descriptor(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  Processes(const Processes&) = delete;
  ~Processes() { kill(); }

  Status start_all(const std::vector<PlannedProcess>& planned) {
    if (!signals_.is_open())
      return data_error(fmt::format("cannot wait for signals: {}", std::strerror(errno)));
    for (const PlannedProcess& each : planned) {
      auto process = start(each);
      if (!process.ok()) {
        interrupt();
        wait();
        return process.error();
      }
      processes_.push_back(std::move(*process));
    }
    return {};
  }

  std::vector<int> wait() {
    while (step()) {
    }
    for (std::size_t k = 0; k < processes_.size(); ++k)
      for (std::size_t s = 0; s < 2; ++s)  // a descendant holds the stream, and its line has no end
        if (const std::string& begun = processes_[k].outputs[s].begun; !begun.empty())
          print(k, begun, s == 1);
    std::vector<int> codes;
    for (const Process& process : processes_) codes.push_back(process.code);
    return codes;
  }

 private:
  /// Waits for output or a signal. False: all processes have ended, and their output is read.
  bool step() {
    std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
    std::vector<std::pair<std::size_t, std::size_t>> outputs;  // of which process
    bool running = false;
    for (std::size_t k = 0; k < processes_.size(); ++k) {
      running = running || processes_[k].code < 0;
      for (std::size_t s = 0; s < 2; ++s)
        if (processes_[k].outputs[s].from.is_open()) {
          polled.push_back({processes_[k].outputs[s].from.get(), POLLIN, 0});
          outputs.emplace_back(k, s);
        }
    }
    // What an ended process has left in its pipes is there; a descendant may keep them open.
    const int ready = ::poll(polled.data(), polled.size(), running ? patience_ms() : 0);
    if (ready == 0 && !running) return false;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (polled[i + 1].revents == 0) continue;
      const auto [k, s] = outputs[i];
      processes_[k].outputs[s].read(
          [&, k = k, s = s](const std::string& line) { print(k, line, s == 1); });
    }
    hear_signals();
    reap();
    say_what_runs();
    return running || interrupts_ == 0;  // after an interrupt, nobody waits for a descendant
  }

  void hear_signals() {
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      // The end of a terminal may come as several SIGHUP: the shell's and the system's.
      const bool again = signal.ssi_signo == SIGHUP && interrupts_ > 0;
      if (signal.ssi_signo != SIGCHLD && !again) interrupt();
    }
  }

  /// For poll(): until say_what_runs() may have something to say; −1: for ever.
  int patience_ms() const {
    if (interrupts_ == 0 || said_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        patience_ends_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

  /// Once, when processes that were asked to end have not, after kPatience or a second interrupt.
  void say_what_runs() {
    if (interrupts_ == 0 || said_ || (interrupts_ == 1 && patience_ms() > 0)) return;
    said_ = true;
    reap();
    std::vector<std::size_t> running;
    for (std::size_t k = 0; k < processes_.size(); ++k)
      if (processes_[k].code < 0) running.push_back(k);
    if (!running.empty()) write(events_.on_wait(running), STDERR_FILENO);
  }

  void print(std::size_t k, const std::string& line, bool error) {
    write(events_.on_line(k, line), error ? STDERR_FILENO : STDOUT_FILENO);
  }

  /// Waits while the stream takes nothing, as a terminal that is held; what still runs is said on
  /// the other stream meanwhile. A stream that is gone, and once the processes are killed a blocked
  /// one too, loses the text.
  void write(const std::string& text, int to) {
    const bool speaks = to != STDERR_FILENO;
    for (std::size_t written = 0; written < text.size() && !killed_;) {
      std::array<pollfd, 2> polled{{{to, POLLOUT, 0}, {signals_.get(), POLLIN, 0}}};
      ::poll(polled.data(), polled.size(), speaks ? patience_ms() : -1);
      hear_signals();
      if (speaks) say_what_runs();
      if (polled[0].revents == 0) continue;
      // A pipe that takes anything takes as much as this.
      const ssize_t count = ::write(to, text.data() + written,
                                    std::min<std::size_t>(text.size() - written, PIPE_BUF));
      if (count < 0 && errno != EAGAIN && errno != EINTR) return;
      if (count > 0) written += static_cast<std::size_t>(count);
    }
  }

  void interrupt() {
    if (++interrupts_ == 1) patience_ends_ = std::chrono::steady_clock::now() + kPatience;
    if (interrupts_ > 2 || said_) return kill();
    for (Process& process : processes_)
      if (process.code < 0) {
        [[maybe_unused]] const ssize_t count = ::write(process.input.get(), "stop\n", 5);
      }
  }

  void kill() {
    killed_ = true;
    for (const Process& process : processes_)
      if (process.code < 0) ::kill(-process.id, SIGKILL);
  }

  void reap() {
    for (std::size_t k = 0; k < processes_.size(); ++k) {
      Process& process = processes_[k];
      int status = 0;
      if (process.code >= 0 || ::waitpid(process.id, &status, WNOHANG) != process.id) continue;
      process.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      // It was asked to end before it could handle that.
      if (interrupts_ > 0 && process.code == 128 + SIGTERM)
        process.code = static_cast<int>(ErrorKind::interrupted);
      events_.on_end(k, process.code, WIFSIGNALED(status));
    }
  }

  const LaunchEvents& events_;
  Descriptor signals_;
  std::vector<Process> processes_;
  int interrupts_ = 0;
  bool said_ = false, killed_ = false;
  std::chrono::steady_clock::time_point patience_ends_;
};

}  // namespace

Result<std::vector<int>> run_processes(const std::vector<PlannedProcess>& planned,
                                       const LaunchEvents& events) {
  Processes processes(events);
  GOSSAMER_TRY_STATUS(processes.start_all(planned));
  return processes.wait();
}

}  // namespace gossamer::peer
