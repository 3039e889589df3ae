// SPDX-License-Identifier: Apache-2.0
// Where the user's files live, by the XDG base directory rules. An empty string means nowhere: the
// variable is unset and so is HOME, or it is not absolute.
#pragma once

#include <string>
#include <vector>

namespace rnntune {

std::string config_folder();  // $XDG_CONFIG_HOME/rnntune, or ~/.config/rnntune
std::string data_folder();    // $XDG_DATA_HOME/rnntune, or ~/.local/share/rnntune
std::string cache_folder();   // $XDG_CACHE_HOME/rnntune, or ~/.cache/rnntune

// The user's own tuning database, in the data folder.
std::string user_database();

// The folder of the databases that ship with the library; RNNTUNE_DATABASES in the environment
// names another one, and empty, none.
std::string shipped_databases();

// What a lookup asks after the files it was given: the user's own, then the shipped ones by name.
std::vector<std::string> default_databases();

}  // namespace rnntune
