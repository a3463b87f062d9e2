#ifndef MICROSCALE_TOOLS_HOSTCEILINGS_HPP
#define MICROSCALE_TOOLS_HOSTCEILINGS_HPP

#include <Microscale_Devices.hpp>

namespace microscale::tools {

/// This machine as a device: what `threads` threads read and multiply a second, measured in a fraction of a second with
/// the widest instructions that the processor has. fp4 is VPDPBUSD, bf16 VDPBF16PS and fp32 multiply-add.
Device measure_this_host(int threads);

}  // namespace microscale::tools

#endif
