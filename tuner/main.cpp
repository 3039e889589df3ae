// SPDX-License-Identifier: Apache-2.0
// The command `rnntune`. Everything a subcommand can refuse arrives here as one exception.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <vector>

#include "rnntune/rnn.hpp"
#include "tuner/command.hpp"

namespace {

using namespace rnntune::tuner;

const char* kFooter =
    "Exit codes: 0 fine; 1 the check failed; 2 bad usage or input; 3 inconclusive; 130 "
    "interrupted,\n"
    "with all finished work saved.";

// The subcommand that the arguments named, or the program itself.
CLI::App* chosen(CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? &app : parsed.front();
}

int refuse(CLI::App& app, const char* message) {
  std::fprintf(stderr, "rnntune: %s\n", message);
  CLI::App* command = chosen(app);
  const std::string name = command == &app ? "" : " " + command->get_name();
  std::fprintf(stderr, "usage: rnntune%s [options]; rnntune%s --help lists them\n",
               name.empty() ? " <subcommand>" : name.c_str(), name.c_str());
  return kBadInput;
}

int run(CLI::App& app, int argc, char** argv) {
  std::vector<Run> runs;
  for (const Command* command : commands()) {
    CLI::App& subcommand = *app.add_subcommand(command->name, command->help);
    if (command->internal) subcommand.group("");
    runs.push_back(command->setup(subcommand));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error.what());
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (app.got_subcommand(commands()[i]->name)) return runs[i]();
  }
  return refuse(app, "a subcommand is required");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Tunes, checks and times the training kernels of recurrent networks.", "rnntune"};
  app.set_version_flag("--version", std::string("rnntune ") + rnntune::version());
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  try {
    return run(app, argc, argv);
  } catch (const BadInput& error) {
    return refuse(app, error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rnntune: %s\n", error.what());
    return kBadInput;
  }
}
