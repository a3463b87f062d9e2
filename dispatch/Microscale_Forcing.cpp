#include <Microscale_Forcing.hpp>

#include <algorithm>
#include <stdexcept>

namespace microscale::Impl {
namespace {

int operation_index(std::string_view name) {
  for (int i = 0; i < operation_count; ++i)
    if (name == to_string(static_cast<Operation>(i))) return i;
  return -1;
}

std::string operation_names() {
  std::string names;
  for (int i = 0; i < operation_count; ++i) names += std::string(i ? ", " : "") + to_string(static_cast<Operation>(i));
  return names;
}

}  // namespace

bool Forcing::empty() const {
  return std::all_of(backend.begin(), backend.end(), [](const std::string& name) { return name.empty(); });
}

bool is_backend_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Forcing parse_forcing(std::string_view text, std::string source) {
  Forcing forcing;
  forcing.source = std::move(source);
  if (text.empty()) return forcing;

  const auto fail = [&](const std::string& what) {
    throw std::invalid_argument("microscale: " + forcing.source + " \"" + std::string(text) + "\" " + what +
                                "; expected a backend's name, or operation=name,operation=name...");
  };
  std::string everywhere;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    begin = end + 1;

    const std::size_t equals = part.find('=');
    const bool for_all = equals == std::string_view::npos;
    const std::string_view name = for_all ? part : part.substr(equals + 1);
    if (!is_backend_name(name)) fail("has \"" + std::string(part) + "\", which names no backend");
    if (for_all) {
      if (!everywhere.empty()) fail("names two backends for every operation");
      everywhere = name;
      continue;
    }
    const int operation = operation_index(part.substr(0, equals));
    if (operation < 0)
      fail("has the unknown operation \"" + std::string(part.substr(0, equals)) + "\" (there are " + operation_names() +
           ")");
    std::string& entry = forcing.backend[operation];
    if (!entry.empty()) fail("names two backends for " + std::string(to_string(static_cast<Operation>(operation))));
    entry = name;
  }
  for (std::string& entry : forcing.backend)
    if (entry.empty()) entry = everywhere;
  return forcing;
}

}  // namespace microscale::Impl
