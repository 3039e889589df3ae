// SPDX-License-Identifier: Apache-2.0
// cuDNN as an opponent, without a GPU and through a fake: what is described to it, that parameters,
// gradients, gates and directions come to the right places of a weight space whose layout only
// cuDNN knows, and that every failure is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/compare.hpp"
#include "reference/cudnn/run.hpp"
#include "reference/cudnn/sweep.hpp"
#include "reference/cudnn/values.hpp"
#include "tests/fake_cudnn.hpp"
#include "tests/host_gpu.hpp"

namespace rnntune::reference::cudnn {
namespace {

using fakes::FakeCudnn;
using fakes::HostGpu;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class CudnnTest : public ::testing::Test {
 protected:
  CudnnTest() {
    fake_.in_context = [this] { return device_->contexts > 0; };
  }
  // Nothing that was made may outlive its owner, and no call may be left to luck about the GPU.
  ~CudnnTest() override {
    EXPECT_EQ(fake_.objects, 0);
    EXPECT_EQ(fake_.outside_context, 0);
    EXPECT_EQ(device_->allocations.size(), 0u);
    EXPECT_EQ(device_->streams, 0);
    EXPECT_EQ(device_->events, 0);
  }

  SessionPtr open() { return Session::open(fake_.table(), device_).value(); }
  std::unique_ptr<CudnnRun> run_of(const std::string& problem, const Algorithm& algorithm,
                                   const std::vector<int>& lengths = {}) {
    const Problem p = parse_problem(problem).value();
    auto run = CudnnRun::create(open(), p, make_inputs(p, 3), lengths, algorithm);
    EXPECT_TRUE(run.ok()) << problem << ": " << run.error().message;
    return run.ok() ? std::move(*run) : nullptr;
  }
  // Prepares a small LSTM and gives the opponent's error, "" where there is none.
  std::string error_of(std::unique_ptr<OpponentRun>* run = nullptr) {
    const Problem p = parse_problem("lstm:L2,T3,B2,I4,H5,f32").value();
    const Inputs inputs = make_inputs(p, 1);
    auto opponent = make_opponent(fake_.table(), device_);
    if (!opponent.ok()) return opponent.error().message;
    auto prepared = (*opponent)->prepare(p, inputs, oracle_step(p, inputs), 1);
    if (!prepared.ok()) return prepared.error().message;
    if (run != nullptr) *run = std::move(*prepared);
    return {};
  }

  FakeCudnn fake_;
  std::shared_ptr<HostGpu> device_ = std::make_shared<HostGpu>();
};

const Algorithm& standard() { return algorithms()[0]; }

void expect_right(const Problem& problem, const Inputs& inputs, CudnnRun& run) {
  ASSERT_TRUE(run.step().ok());
  const Status status = run.step();  // a second one must not add to the first
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto out = run.outputs();
  ASSERT_TRUE(out.ok()) << out.error().message;
  for (const TensorCheck& check : check_outputs(problem, *out, oracle_step(problem, inputs))) {
    EXPECT_TRUE(check.ok) << check.tensor << ": " << check.reason << ", error " << check.error
                          << ", bound " << check.bound;
  }
}

TEST_F(CudnnTest, ComputesWhatTheOracleDoes) {
  for (const char* text :
       {"lstm:L1,T1,B1,I1,H1,f32", "lstm:L2,T4,B3,I5,H6,f32", "lstm:L3,T3,B2,I4,H5,D2,f32",
        "lstm:L2,T3,B2,I4,H7,P3,f32", "lstm:L2,T3,B2,I4,H6,P5,D2,bias1,f32",
        "lstm:L1,T3,B2,I4,H5,nobias,f32", "gru:L2,T4,B3,I5,H6,f32", "gru:L2,T3,B2,I4,H5,D2,f32",
        "gru:L1,T3,B2,I4,H5,bias1,f32", "rnn_tanh:L2,T4,B3,I5,H6,f32",
        "rnn_relu:L2,T3,B2,I4,H5,D2,bias1,f32", "rnn_tanh:L1,T2,B2,I3,H4,D2,nobias,f32",
        "lstm:L1,T3,B2,I4,H5,tf32", "lstm:L2,T3,B4,I8,H8,f16", "gru:L1,T3,B4,I8,H8,D2,bf16"}) {
    for (const Algorithm& algorithm : algorithms()) {
      SCOPED_TRACE(std::string(text) + " " + algorithm.name);
      const Problem problem = parse_problem(text).value();
      const Inputs inputs = make_inputs(problem, 7);
      EXPECT_EQ(why_not(problem), "");
      auto run = CudnnRun::create(open(), problem, inputs, {}, algorithm);
      ASSERT_TRUE(run.ok()) << run.error().message;
      expect_right(problem, inputs, **run);
    }
  }
}

TEST_F(CudnnTest, SamplesHaveLengthsOfTheirOwn) {
  // The same network on the first sample alone is what it does to that sample in the batch.
  const std::vector<int> lengths{5, 3, 1};
  for (const Algorithm& algorithm : {algorithms()[0], algorithms()[1]}) {
    SCOPED_TRACE(algorithm.name);
    auto run = run_of("lstm:L2,T5,B3,I4,H6,D2,f32", algorithm, lengths);
    ASSERT_TRUE(run->step().ok());
    const Outputs<float> out = run->outputs().value();
    EXPECT_THAT(fake_.data.back().lengths, ElementsAre(5, 3, 1));
    const Inputs all = make_inputs(parse_problem("lstm:L2,T5,B3,I4,H6,D2,f32").value(), 3);
    for (std::size_t b = 0; b < 3; ++b) {
      const auto T = std::size_t(lengths[b]);
      const Problem one =
          parse_problem("lstm:L2,T" + std::to_string(T) + ",B1,I4,H6,D2,f32").value();
      Inputs inputs = make_inputs(one, 3);
      const auto pick = [&](const std::vector<float>& from, std::vector<float>& to,
                            std::size_t width) {
        for (std::size_t r = 0; r < to.size() / width; ++r)
          std::copy_n(&from[(r * 3 + b) * width], width, &to[r * width]);
      };
      pick(all.x, inputs.x, 4), pick(all.h_0, inputs.h_0, 6), pick(all.c_0, inputs.c_0, 6);
      inputs.weights = all.weights;
      const Outputs<double> expected = oracle_step(one, inputs);
      for (std::size_t t = 0; t < 5; ++t)
        for (std::size_t k = 0; k < 12; ++k)
          EXPECT_NEAR(out.y[(t * 3 + b) * 12 + k], t < T ? expected.y[t * 12 + k] : 0, 1e-6);
    }
  }
  const Problem p = parse_problem("lstm:T5,B3,I4,H6,f32").value();
  EXPECT_FALSE(CudnnRun::create(open(), p, make_inputs(p, 1), {1, 3, 5}, algorithms()[1]).ok())
      << "packed sequences come longest first";
}

TEST_F(CudnnTest, DescribesTheNetwork) {
  run_of("lstm:L3,T4,B2,I5,H7,P3,D2,bias1,f32", algorithms()[1]);
  const cudnnRNNStruct n = fake_.networks.back();
  EXPECT_EQ(n.algo, CUDNN_RNN_ALGO_STANDARD);
  EXPECT_EQ(n.flags, unsigned(CUDNN_RNN_PADDED_IO_DISABLED));
  EXPECT_EQ(n.cell, CUDNN_LSTM);
  EXPECT_EQ(n.bias, CUDNN_RNN_SINGLE_INP_BIAS);
  EXPECT_EQ(n.direction, CUDNN_BIDIRECTIONAL);
  EXPECT_EQ(n.input_mode, CUDNN_LINEAR_INPUT);
  EXPECT_EQ(n.input, 5);
  EXPECT_EQ(n.hidden, 7);
  EXPECT_EQ(n.projection, 3);
  EXPECT_EQ(n.layers, 3);
  EXPECT_EQ(n.dropout, nullptr);
  EXPECT_THAT(fake_.calls, Not(Contains("cudnnBuildRNNDynamic")));
  run_of("gru:L1,T4,B2,I5,H7,nobias,f32", standard());
  EXPECT_EQ(fake_.networks.back().projection, 7) << "none is as wide as the state";
  EXPECT_EQ(fake_.networks.back().bias, CUDNN_RNN_NO_BIAS);
  EXPECT_EQ(fake_.networks.back().direction, CUDNN_UNIDIRECTIONAL);
  run_of("lstm:L1,T4,B2,I5,H7,nobias,f32", algorithms()[4]);
  EXPECT_EQ(fake_.networks.back().algo, CUDNN_RNN_ALGO_PERSIST_DYNAMIC);
  EXPECT_EQ(fake_.networks.back().bias, CUDNN_RNN_DOUBLE_BIAS) << "persistent ones take no other";
  EXPECT_EQ(fake_.networks.back().flags, CUDNN_RNN_PADDED_IO_ENABLED);
  EXPECT_THAT(fake_.calls, Contains("cudnnBuildRNNDynamic"));
}

TEST_F(CudnnTest, F32IsNeverRoundedToLess) {
  const struct {
    const char* dtype;
    cudnnDataType_t type;
    cudnnMathType_t math;
  } rows[] = {{"f32", CUDNN_DATA_FLOAT, CUDNN_FMA_MATH},
              {"tf32", CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH},
              {"f16", CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH},
              {"bf16", CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH}};
  for (const auto& row : rows) {
    run_of(std::string("lstm:T2,B2,I3,H4,") + row.dtype, standard());
    EXPECT_EQ(fake_.networks.back().data_type, row.type) << row.dtype;
    EXPECT_EQ(fake_.networks.back().math_precision, CUDNN_DATA_FLOAT) << row.dtype;
    EXPECT_EQ(fake_.networks.back().math, row.math) << row.dtype;
  }
}

TEST_F(CudnnTest, DropoutHasItsStatesOnTheDevice) {
  auto run = run_of("lstm:L2,T2,B2,I3,H4,drop0.25,f32", standard());
  ASSERT_THAT(fake_.dropouts, SizeIs(1));
  EXPECT_EQ(fake_.dropouts[0].rate, 0.25f);
  EXPECT_EQ(device_->allocations.at(fake_.dropouts[0].states), fake_.dropouts[0].bytes);
  EXPECT_NE(fake_.networks.back().dropout, nullptr);
}

TEST_F(CudnnTest, BackwardNeedsAForwardOfItsOwn) {
  auto run = run_of("lstm:T2,B2,I3,H4,f32", standard());
  EXPECT_FALSE(run->backward_data().ok());
  ASSERT_TRUE(run->forward().ok());
  EXPECT_FALSE(run->backward_weights().ok());
  EXPECT_THAT(fake_.calls, Each(Not(HasSubstr("Backward")))) << "cuDNN itself would not object";
  ASSERT_TRUE(run->backward_data().ok());
  EXPECT_THAT(run->backward_data().error().message, StartsWith("backward_data: expected the res"));
  EXPECT_TRUE(run->backward_weights().ok());
  EXPECT_THAT(run->backward_weights().error().message, StartsWith("backward_weights: expected "));
}

TEST_F(CudnnTest, TimesItsPhases) {
  fake_.delay_us[CUDNN_RNN_ALGO_STANDARD] = 2000;
  auto run = run_of("lstm:T2,B2,I3,H4,f32", standard());
  const Result<Phases> phases = run->time_phases(2);
  ASSERT_TRUE(phases.ok()) << phases.error().message;
  EXPECT_GE(phases->forward_us, 2000);
  EXPECT_GT(phases->backward_data_us, 0);
  EXPECT_GT(phases->backward_weights_us, 0);
}

TEST_F(CudnnTest, TheFastestAlgorithmIsTheOpponent) {
  fake_.delay_us = {{CUDNN_RNN_ALGO_STANDARD, 30000},
                    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, 10000},
                    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, 30000}};
  fake_.refusals[CUDNN_RNN_ALGO_PERSIST_STATIC] = {"cudnnSetRNNDescriptor_v8",
                                                   CUDNN_STATUS_NOT_SUPPORTED};
  std::unique_ptr<OpponentRun> run;
  ASSERT_EQ(error_of(&run), "");
  EXPECT_THAT(run->algorithm(), StartsWith("persist_dynamic "));
  EXPECT_THAT(run->notes(), SizeIs(algorithms().size()));
  EXPECT_THAT(run->notes(), Contains("persist_static packed: cudnnSetRNNDescriptor_v8: "
                                     "CUDNN_STATUS_NOT_SUPPORTED (no such thing)"));
  EXPECT_THAT(run->notes(), Contains(AllOf(StartsWith("standard packed: "), HasSubstr(" us a step"),
                                           HasSubstr("backward data"))));
  EXPECT_TRUE(run->step().ok());
}

TEST_F(CudnnTest, AFasterAlgorithmWithWrongResultsIsPassedOver) {
  fake_.delay_us = {{CUDNN_RNN_ALGO_STANDARD, 5000},
                    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, 10000},
                    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, 10000}};
  fake_.errors[CUDNN_RNN_ALGO_PERSIST_STATIC] = 0.01f;
  std::unique_ptr<OpponentRun> run;
  ASSERT_EQ(error_of(&run), "");
  EXPECT_THAT(run->algorithm(), StartsWith("standard "));
  EXPECT_THAT(run->notes(),
              Contains("persist_static unpacked: wrong results: y: error above bound"));
}

TEST_F(CudnnTest, WhereAllAreRefusedThereIsNoOpponent) {
  for (const Algorithm& algorithm : algorithms()) {
    fake_.refusals[algorithm.algo] = {"cudnnRNNBackwardWeights_v8", CUDNN_STATUS_NOT_SUPPORTED};
  }
  const std::string error = error_of();
  EXPECT_THAT(error, StartsWith("no algorithm serves; "));
  for (const Algorithm& algorithm : algorithms()) EXPECT_THAT(error, HasSubstr(algorithm.name));
  EXPECT_THAT(error, HasSubstr("cudnnRNNBackwardWeights_v8: CUDNN_STATUS_NOT_SUPPORTED"));
  EXPECT_THAT(error, Not(HasSubstr("\n")));
}

TEST_F(CudnnTest, WhereAllDifferFromTheReferenceItIsAFault) {
  const Problem p = parse_problem("lstm:L2,T3,B2,I4,H5,f32").value();
  const Inputs inputs = make_inputs(p, 1);
  const auto code_of = [&] {
    auto opponent = make_opponent(fake_.table(), device_).value();
    return opponent->prepare(p, inputs, oracle_step(p, inputs), 1).error().code;
  };
  for (const Algorithm& algorithm : algorithms()) {
    fake_.refusals[algorithm.algo] = {"cudnnRNNForward", CUDNN_STATUS_NOT_SUPPORTED};
  }
  EXPECT_EQ(code_of(), ErrorCode::unsupported);
  fake_.refusals.erase(CUDNN_RNN_ALGO_STANDARD);
  fake_.errors[CUDNN_RNN_ALGO_STANDARD] = 0.01f;
  EXPECT_EQ(code_of(), ErrorCode::internal);
}

TEST_F(CudnnTest, EveryCallThatFailsIsNamed) {
  for (const char* call :
       {"cudnnCreate", "cudnnSetStream", "cudnnCreateTensorDescriptor",
        "cudnnSetTensorNdDescriptor", "cudnnGetTensorNdDescriptor", "cudnnCreateRNNDescriptor",
        "cudnnSetRNNDescriptor_v8", "cudnnCreateRNNDataDescriptor", "cudnnSetRNNDataDescriptor",
        "cudnnGetRNNWeightSpaceSize", "cudnnGetRNNWeightParams", "cudnnGetRNNTempSpaceSizes",
        "cudnnRNNForward", "cudnnRNNBackwardData_v8", "cudnnRNNBackwardWeights_v8"}) {
    fake_.failures = {{call, CUDNN_STATUS_EXECUTION_FAILED}};
    EXPECT_THAT(error_of(), HasSubstr(std::string(call) + ": CUDNN_STATUS_EXECUTION_FAILED"));
  }
  // Those of one algorithm alone, or of dropout.
  fake_.failures = {{"cudnnBuildRNNDynamic", CUDNN_STATUS_EXECUTION_FAILED}};
  std::unique_ptr<OpponentRun> run;
  EXPECT_EQ(error_of(&run), "");
  EXPECT_THAT(run->notes(), Contains(HasSubstr("cudnnBuildRNNDynamic: ")));
  const Problem p = parse_problem("lstm:L2,T2,B2,I3,H4,drop0.5,f32").value();
  for (const char* call :
       {"cudnnDropoutGetStatesSize", "cudnnCreateDropoutDescriptor", "cudnnSetDropoutDescriptor"}) {
    fake_.failures = {{call, CUDNN_STATUS_EXECUTION_FAILED}};
    const auto failed = CudnnRun::create(open(), p, make_inputs(p, 1), {}, standard());
    EXPECT_THAT(failed.error().message, StartsWith(call));
  }
}

TEST_F(CudnnTest, AWeightSpaceThatDiffersIsRefused) {
  fake_.misplaced_bytes = 100000;
  EXPECT_THAT(error_of(), AllOf(HasSubstr("pseudo-layer 0, linear layer 0: expected 20 elements"),
                                HasSubstr("got 20 at 10")));
  fake_.misplaced_bytes = 0;
  fake_.missing_number = 5;
  EXPECT_THAT(error_of(), HasSubstr("linear layer 5: expected 25 elements in the weight space, "
                                    "got 0"));
}

TEST_F(CudnnTest, EveryDeviceFailureIsTold) {
  for (const char* call : {"create_stream", "with_context", "to_device", "to_host", "fill",
                           "synchronize", "create_event", "record"}) {
    device_->broken = call;
    EXPECT_THAT(error_of(), HasSubstr(std::string(call) + ": broken"));
    device_->broken.clear();
  }
  device_->memory_bytes = 100;
  EXPECT_THAT(error_of(), HasSubstr("no memory for"));
}

TEST_F(CudnnTest, AFailureInAStepIsAnErrorOfThatStep) {
  std::unique_ptr<OpponentRun> run;
  ASSERT_EQ(error_of(&run), "");
  fake_.failures = {{"cudnnRNNBackwardData_v8", CUDNN_STATUS_EXECUTION_FAILED}};
  const Status status = run->step();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, StartsWith("cudnnRNNBackwardData_v8: "));
  fake_.failures.clear();
  EXPECT_TRUE(run->step().ok());
}

TEST_F(CudnnTest, AnOldVersionIsRefused) {
  EXPECT_EQ(version_of(fake_.table()), "9.19.0");
  fake_.version = 8907;
  EXPECT_EQ(error_of(), "cuDNN 8.9.7 is too old, expected 9 or newer");
}

TEST_F(CudnnTest, SaysWhatItCannotDo) {
  auto opponent = make_opponent(fake_.table(), device_).value();
  for (const char* text :
       {"lstm_peephole:T1,B1,I1,H1,f32", "lstm:T1,B1,I4,H4,P4,f32", "lstm:T1,B1,I4,H4,P4,G2,f32",
        "lstm:T1,B1,I4,H4,P2,R2,f32", "lstm:T1,B1,I4,H4,N2,f32", "lstm:T1,B1,I4,H4,var,f32",
        "lstm:L2,T1,B1,I4,H4,drop0.5,f32", "gru:T1,B4000000000,I1,H1,f32"}) {
    const Problem p = parse_problem(text).value();
    EXPECT_NE(opponent->why_not(p), "") << text;
    EXPECT_FALSE(opponent->prepare(p, {}, {}, 1).ok()) << text;
  }
}

}  // namespace
}  // namespace rnntune::reference::cudnn
