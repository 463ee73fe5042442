// gossamer watch FOLDER: serves the page of a run from the logs in its folder.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/signals.hpp"
#include "cli/commands.hpp"
#include "peer/log/resolved_config.hpp"
#include "peer/prediction/prediction.hpp"
#include "peer/watch/log_follower.hpp"
#include "peer/watch/run_page.hpp"

namespace gossamer::cli {

using namespace peer;
namespace {

constexpr auto kPoll = std::chrono::milliseconds(200);

volatile std::sig_atomic_t interrupted = 0;

struct WatchCommand {
  std::string folder;
  std::string http = "127.0.0.1:8080";
};

/// The curve that theory predicts for the run of the folder; null if its configuration is not there
/// or needs what this machine lacks.
Json predicted_for(const std::filesystem::path& folder) {
  const auto logs = log_files(folder);
  if (!logs.ok() || logs->empty()) return {};
  auto config = load_config(
      resolved_path(logs->front().second.parent_path(), logs->front().first).string(), {});
  if (!config.ok() || !check_predictable(*config).ok()) return {};
  config->local.device = "cpu";  // whatever device the run uses
  const auto setup = make_setup(std::move(config).value());
  return setup.ok() ? predicted_curve(*setup) : Json();
}

Result<int> execute(const WatchCommand& command) {
  const auto interrupt = [](int) { interrupted = 1; };
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, interrupt);
  if (!is_ignored(SIGHUP)) std::signal(SIGHUP, interrupt);
  RunViewOptions view;
  view.predicted = predicted_for(command.folder);
  RunPage page(std::move(view));
  LogFollower follower(command.folder, page.view(), [] { return interrupted != 0; });
  GOSSAMER_TRY_STATUS(follower.update());
  if (interrupted != 0) return 0;
  if (page.view().after(0).run == nullptr) return no_run_in(command.folder);
  GOSSAMER_TRY_STATUS(page.serve("--http", command.http));
  fmt::print("the page of {} is at {} (Ctrl-C ends this program)\n", command.folder, page.url());
  std::fflush(stdout);
  while (interrupted == 0) {
    std::this_thread::sleep_for(kPoll);
    GOSSAMER_TRY_STATUS(follower.update());
  }
  return 0;
}

}  // namespace

void add_watch(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<WatchCommand>();
  CLI::App* watch = app.add_subcommand(
      "watch", "serve a page that shows a run, finished or under way, from the logs in its folder");
  watch
      ->add_option("folder", command->folder,
                   "the run folder, or a folder with one subfolder per process")
      ->required();
  watch->add_option("--http", command->http, "host:port to serve the page at; port 0: any free one")
      ->capture_default_str();
  watch->callback([command, &exit_code] {
    auto result = execute(*command);
    exit_code = result.ok() ? *result : print_error(result.error());
  });
}

}  // namespace gossamer::cli
