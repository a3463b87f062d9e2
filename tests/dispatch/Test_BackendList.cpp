#include <Small_Backend.hpp>
#include <Test_Dispatch.hpp>

// The list that CMake generates for dispatch, here with one backend that is built and one that is not.
namespace microscale::Test {
namespace {

TEST(BackendList, IsInOrderWithReasons) {
  const auto all = backends();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "absent");
  EXPECT_FALSE(all[0].compiled);
  EXPECT_EQ(all[0].reason, "not part of this build: made up for a \"test\" with a \\");
  EXPECT_EQ(all[1].name, "small");
  EXPECT_TRUE(all[1].compiled);
  EXPECT_EQ(all[1].description, "MXFP4 on the host, for the tests");
  EXPECT_EQ(all[1].available, backend_small::backend().available().supported);
  EXPECT_EQ(all[2].name, "reference");
}

TEST(BackendList, TheDefaultContextChoosesFromIt) {
  EXPECT_EQ(default_context().plan(matmul_problem(512, 512, 512)).backend(), &backend_small::backend());
  EXPECT_EQ(default_context().plan(matmul_problem(1, 1, 32)).backend(), nullptr);
}

TEST(BackendList, ForcingWhatIsNotBuiltSaysWhy) {
  EXPECT_EQ(message_of<std::runtime_error>(
                [] { default_context().plan(matmul_problem(512, 512, 512), {.backend = "absent"}); }),
            "microscale::matmul: backend absent was forced by the call's options and cannot run it: not part of this "
            "build: made up for a \"test\" with a \\");
}

TEST(BackendList, AnAddedBackendMayNotTakeAListedName) {
  const FakeBackend again("small");
  Context context;
  EXPECT_THROW(context.add_backend(again), std::invalid_argument);
}

}  // namespace
}  // namespace microscale::Test
