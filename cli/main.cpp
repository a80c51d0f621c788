#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/printable.h"
#include "commands.h"
#include "errors.h"
#include "fastweights/environment.h"

namespace fastweights::cli {
namespace {

constexpr int kWrongCommandLine = 2;

// names of the options of a command and of its parents
std::vector<std::string> option_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// the command that was called, or the program
const CLI::App& called(const CLI::App& program) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// the option of that name of an app or of its commands
const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  const CLI::Option* found = app.get_option_no_throw(name);
  for (const CLI::App* command : commands_of(app)) {
    if (!found) found = find_option(*command, name);
  }
  return found;
}

std::string without_value(const std::string& word) { return word.substr(0, word.find('=')); }

// the first word that is neither an option of some command nor the value of one; "" if none
std::string word_for_command(const CLI::App& program) {
  const std::vector<std::string> words = program.remaining(true);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i][0] != '-') return words[i];
    const std::string name = without_value(words[i]);
    const CLI::Option* option = find_option(program, name);
    if (!option) return "";
    if (name == words[i] && option->get_items_expected_min() > 0) ++i;
  }
  return "";
}

// the error of an unknown command, or nothing; CLI11 itself only says that a command is required
std::string unknown_command(const CLI::App& program) {
  const CLI::App& app = called(program);
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const std::string word = word_for_command(program);
  if (names.empty() || word.empty()) return "";
  const std::string end = suggestion(word, names);
  return "unknown command '" + word + "'" + (&app == &program ? "" : " of '" + app.get_name() + "'") +
         (end.empty() ? "; 'fastweights help' lists the commands" : end);
}

std::string unknown_option(const CLI::App& program, int argc, char** argv) {
  const CLI::App& app = called(program);
  const std::vector<std::string> names = option_names(&app);
  for (int i = 1; i < argc; ++i) {
    const std::string word = without_value(argv[i]);
    if (word.rfind("--", 0) != 0 || std::find(names.begin(), names.end(), word) != names.end()) continue;
    const std::string close = nearest(word, names);
    return "unknown option " + word +
           (close.empty() ? "; see fastweights " + app.get_name() + " --help" : "; the nearest is " + close);
  }
  const std::vector<std::string> extras = program.remaining(true);
  const std::string extra = extras.empty() ? "" : extras.front();
  if (extra.rfind("-", 0) == 0 && app.get_option_no_throw(without_value(extra)))
    return "option " + extra + " belongs after the command: fastweights " + app.get_name() + " " + extra;
  return "unexpected argument '" + extra + "' for '" + app.get_name() + "'; see fastweights " +
         app.get_name() + " --help";
}

// options of the program, which may follow every command, are in the help of each
class HelpText : public CLI::Formatter {
 public:
  // what follows the groups of options
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    const std::string own = Formatter::make_subcommands(app, mode);
    const CLI::App* program = app;
    while (program->get_parent()) program = program->get_parent();
    if (program == app) return own;
    const CLI::Option* help = program->get_help_ptr();
    const auto options = program->get_options(
        [=](const CLI::Option* option) { return option != help && option->nonpositional(); });
    return make_group("All commands", false, options) + own;
  }
};

int run(int argc, char** argv) {
  CLI::App program(
      "Continuous-time fast weight programmers: sequence models whose memory follows a differential "
      "equation.");
  program.name("fastweights");
  program.formatter(std::make_shared<HelpText>());
  program.set_version_flag("--version", "fastweights " + version());
  program.require_subcommand(1);
  // options of the program may follow a command, too
  program.fallthrough();
  program.footer("Use 'fastweights COMMAND --help' for the options of a command.");
  Session session;
  session.command_line = "fastweights";
  for (int i = 1; i < argc; ++i) session.command_line += " " + shell_word(argv[i]);
  program.add_option("--threads", session.threads, "number of threads; 0: all cores")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  // before any command's own callback
  program.parse_complete_callback([&session] { set_threads(session.threads); });

  add_train(program, session);
  add_compare(program, session);
  add_models(program, session);
  add_evaluate(program, session);
  add_predict(program, session);
  add_inspect(program, session);
  add_report(program, session);
  add_board(program, session);
  add_data(program, session);
  add_info(program, session);
  add_selftest(program, session);
  add_gradcheck(program, session);
  add_bench(program, session);
  program.add_subcommand("help", "Show this text")->callback([&program] {
    // not program.help(), which would show the help of the command that was called: this one
    std::fputs(
        program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal).c_str(),
        stdout);
  });
  const auto wrong_command_line = [](const std::string& text) {
    std::fprintf(stderr, "fastweights: %s\n", printable(text).c_str());
    return kWrongCommandLine;
  };
  try {
    program.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    return wrong_command_line(unknown_option(program, argc, argv));
  } catch (const CLI::ParseError& error) {
    if (const std::string text = unknown_command(program); !text.empty()) return wrong_command_line(text);
    // help and version end here, too
    return program.exit(error) == 0 ? 0 : kWrongCommandLine;
  }
  return session.exit_status;
}

// a closed stream's number would be given to the next file that is opened, and what is printed would go there
void open_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) < 0) std::exit(1);
  }
}

// the exit status, unless something that was printed got lost, as on a full disk
int checked_output(int status) {
  errno = 0;
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost) return status;
  std::fprintf(stderr, "fastweights: the standard output cannot be written: %s\n",
               errno != 0 ? std::strerror(errno) : "a part of it is lost");
  return status == 0 ? 1 : status;
}

std::string failure(const std::exception& error, int argc, char** argv) {
  if (!is_out_of_memory(error)) return error_text(error);
  return printable(argc > 1 ? argv[1] : "this") + " needs more memory than there is";
}

}  // namespace
}  // namespace fastweights::cli

int main(int argc, char** argv) {
  using namespace fastweights::cli;
  open_streams();
  // a file that is too large is an error of its write, with a message
  std::signal(SIGXFSZ, SIG_IGN);
  int status = 1;
  try {
    status = run(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "fastweights: %s\n", failure(error, argc, argv).c_str());
  }
  return checked_output(status);
}
