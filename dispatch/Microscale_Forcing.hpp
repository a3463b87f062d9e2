#ifndef MICROSCALE_FORCING_HPP
#define MICROSCALE_FORCING_HPP

#include <Microscale_Names.hpp>

#include <array>
#include <string>
#include <string_view>

namespace microscale::Impl {

/// Which backend is forced for which operation; an empty name forces nothing.
struct Forcing {
  std::array<std::string, operation_count> backend;
  std::string source;  ///< who says so, for messages

  const std::string& operator[](Operation operation) const { return backend[static_cast<int>(operation)]; }
  bool empty() const;
};

/// Reads `name`, `op=name,op=name…` or both (`name,op=name`: name where no op says otherwise). Names are lower-case
/// letters, digits and underscores; whether such a backend exists is asked when it is needed. Throws
/// std::invalid_argument naming the source, the bad part and, for an unknown operation, the valid ones.
Forcing parse_forcing(std::string_view text, std::string source);

/// Whether `name` can name a backend: lower-case letters, digits and underscores, at least one.
bool is_backend_name(std::string_view name);

}  // namespace microscale::Impl

#endif
