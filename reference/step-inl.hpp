// SPDX-License-Identifier: Apache-2.0
// Included by step.hpp: the template it declares.
#pragma once

#include <algorithm>
#include <string>

namespace rnntune::reference {

template <class A, class B, class Visit>
void each_output(A& a, B& b, Visit visit) {
  auto present = [&](const std::string& name, auto& left, auto& right) {
    if (!left.empty() || !right.empty()) visit(name, left, right);
  };
  present("y", a.y, b.y);
  present("h_n", a.h_n, b.h_n);
  present("c_n", a.c_n, b.c_n);
  present("dx", a.dx, b.dx);
  present("dh_0", a.dh_0, b.dh_0);
  present("dc_0", a.dc_0, b.dc_0);
  for (std::size_t l = 0; l < std::min(a.gradients.size(), b.gradients.size()); ++l) {
    const std::string index = "[" + std::to_string(l) + "]";
    auto& left = a.gradients[l];
    auto& right = b.gradients[l];
    present("dW_ih" + index, left.weight_ih, right.weight_ih);
    present("dW_hh" + index, left.weight_hh, right.weight_hh);
    present("db_ih" + index, left.bias_ih, right.bias_ih);
    present("db_hh" + index, left.bias_hh, right.bias_hh);
    present("dW_hr" + index, left.weight_hr, right.weight_hr);
  }
}

}  // namespace rnntune::reference
