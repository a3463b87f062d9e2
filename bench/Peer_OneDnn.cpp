#include <Microscale_Peers.hpp>

#if defined(MICROSCALE_BENCH_ONEDNN)

#include <dnnl.hpp>

#include <memory>

namespace microscale::bench {
namespace {

dnnl::matmul::primitive_desc matmul_description(const dnnl::engine& engine, const dnnl::memory::desc& a,
                                                const dnnl::memory::desc& b, const dnnl::memory::desc& c) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, a, b, c};
#else
  return {dnnl::matmul::desc(a, b, c), engine};
#endif
}

struct Call {
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::matmul matmul;
  dnnl::memory a, c;
  std::vector<dnnl::memory> b;
  std::size_t turn = 0;

  void operator()() {
    turn = (turn + 1) % b.size();
    matmul.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b[turn]}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
};

}  // namespace

std::function<void()> onednn_bf16(const PeerProduct<bf16>& p, PeerWeights weights) {
  using Memory = dnnl::memory;
  const Memory::desc a({p.m, p.k}, Memory::data_type::bf16, Memory::format_tag::ab);
  const Memory::desc b({p.k, p.n}, Memory::data_type::bf16, Memory::format_tag::ba);
  const Memory::desc c({p.m, p.n}, Memory::data_type::f32, Memory::format_tag::ab);
  const Memory::desc any(b.dims(), Memory::data_type::bf16, Memory::format_tag::any);
  try {
    auto call = std::make_shared<Call>();
    call->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
    call->stream = dnnl::stream(call->engine);
    const auto description = matmul_description(call->engine, a, weights == PeerWeights::packed ? any : b, c);
    call->matmul = dnnl::matmul(description);
    call->a = Memory(a, call->engine, const_cast<bf16*>(p.a));
    call->c = Memory(c, call->engine, p.c);
    for (const bf16* data : p.b) {
      Memory plain(b, call->engine, const_cast<bf16*>(data));
      if (description.weights_desc() != b) {
        Memory packed(description.weights_desc(), call->engine);
        dnnl::reorder(plain, packed).execute(call->stream, plain, packed);
        call->stream.wait();
        plain = packed;
      }
      call->b.push_back(plain);
    }
    return [call] { (*call)(); };
  } catch (const dnnl::error&) {
    return {};  // before AVX-512 it has no bfloat16
  }
}

std::string onednn_version() {
  const dnnl::version_t* v = dnnl::version();
  const bf16 one(1.0f);
  float c = 0;
  const bool able = onednn_bf16({1, 1, 1, &one, {&one}, &c}, PeerWeights::packed) != nullptr;
  return "oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch) +
         (able ? "" : " (without bfloat16 on this processor)");
}

}  // namespace microscale::bench

#else

namespace microscale::bench {

std::function<void()> onednn_bf16(const PeerProduct<bf16>&, PeerWeights) { return {}; }
std::string onednn_version() { return "oneDNN is not built in: none was found when this was configured"; }

}  // namespace microscale::bench

#endif
