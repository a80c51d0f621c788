#include "train/board.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/files.h"
#include "base/printable.h"
#include "commands.h"
#include "local_server.h"
#include "report/report.h"

namespace fastweights::cli {
namespace {

struct BoardCommand {
  std::string folder, once;
  int port = 8080;
};

volatile std::sig_atomic_t board_stopped = 0;

extern "C" void on_board_stop(int) { board_stopped = 1; }

// reports are pages of others: their scripts run, apart from the board and without a network
constexpr const char* kReportPolicy =
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:";
constexpr const char* kHtml = "text/html; charset=utf-8";

// what is served; several windows share one look at the folder per second
class Board {
 public:
  explicit Board(std::string folder) : folder_(std::move(folder)) {}

  Answer answer(const std::string& path) {
    const std::string reports = "/reports/";
    if (path == "/")
      return {.type = kHtml, .text = report::board_page("Runs", latest(), report::BoardPage::Live)};
    if (path == "/board.json") return {.type = "application/json", .text = latest()};
    if (path.rfind(reports, 0) == 0) {
      const std::string file = board_report(folder_, path.substr(reports.size()));
      if (!file.empty()) return {.type = kHtml, .file = file, .policy = kReportPolicy};
    }
    return {.status = 404, .text = "there is no such page\n"};
  }

 private:
  using Clock = std::chrono::steady_clock;

  const std::string& latest() {
    const Clock::time_point now = Clock::now();
    if (json_.empty() || now - read_ > std::chrono::seconds(1)) {
      json_ = report::to_json(read_board(folder_, BoardLinks::Server));
      read_ = Clock::now();
    }
    return json_;
  }

  std::string folder_, json_;
  Clock::time_point read_ = {};
};

void serve(const BoardCommand& command) {
  // a folder that is missing is an error now
  Board board(command.folder);
  board.answer("/board.json");
  LocalServer server(command.port);
  std::signal(SIGINT, on_board_stop);
  std::signal(SIGTERM, on_board_stop);
  std::printf("http://127.0.0.1:%d shows the runs in %s; Ctrl-C ends it\n", server.port(),
              printable(command.folder).c_str());
  std::fflush(stdout);
  const auto answer = [&](const std::string& path) {
    try {
      return board.answer(path);
    } catch (const std::exception& error) {
      // a folder that is moved away comes back, perhaps
      return Answer{.status = 500, .text = printable(error.what()) + "\n"};
    }
  };
  server.serve(answer, [] { return board_stopped != 0; });
}

void write_once(const BoardCommand& command) {
  const report::BoardData board = read_board(command.folder, BoardLinks::Files);
  replace_file(command.once,
               report::board_page(board.title, report::to_json(board), report::BoardPage::File));
  std::printf("%s\n", printable(command.once).c_str());
}

}  // namespace

void add_board(CLI::App& program, Session&) {
  auto command = std::make_shared<BoardCommand>();
  CLI::App* app = program.add_subcommand("board", "Show all runs of a folder on a local page");
  app->add_option("runs", command->folder, "folder of runs, at any depth")->required();
  app->add_option("--port", command->port, "port on 127.0.0.1; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app->add_option("--once", command->once, "write the page to a file instead of serving it");
  app->footer(
      "Examples:\n"
      "  fastweights board runs --once board.html\n"
      "The page is served to this machine only, and refreshes itself while runs are trained.");
  app->callback([command] { command->once.empty() ? serve(*command) : write_once(*command); });
}

}  // namespace fastweights::cli
