// SPDX-License-Identifier: Apache-2.0
#include "reference/cudnn/network.hpp"

#include "reference/cudnn/values.hpp"

namespace rnntune::reference::cudnn {
namespace {

constexpr auto kUnpacked = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
constexpr auto kPacked = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
constexpr unsigned long long kDropoutSeed = 1;

constexpr Algorithm kAlgorithms[] = {
    {CUDNN_RNN_ALGO_STANDARD, kUnpacked, "standard unpacked"},
    {CUDNN_RNN_ALGO_STANDARD, kPacked, "standard packed"},
    {CUDNN_RNN_ALGO_PERSIST_STATIC, kUnpacked, "persist_static unpacked"},
    {CUDNN_RNN_ALGO_PERSIST_STATIC, kPacked, "persist_static packed"},
    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, kUnpacked, "persist_dynamic unpacked"},
    {CUDNN_RNN_ALGO_PERSIST_DYNAMIC, kPacked, "persist_dynamic packed"},
    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, kUnpacked, "persist_static_small_h unpacked"},
    {CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, kPacked, "persist_static_small_h packed"},
};

cudnnRNNMode_t mode_of(Cell cell) {
  switch (cell) {
    case Cell::gru:
      return CUDNN_GRU;
    case Cell::rnn_tanh:
      return CUDNN_RNN_TANH;
    case Cell::rnn_relu:
      return CUDNN_RNN_RELU;
    default:
      return CUDNN_LSTM;
  }
}

// The default rounds the inputs of f32 products to tf32 on GPUs that can; fma never does.
cudnnMathType_t math_of(Dtype dtype) {
  if (dtype == Dtype::f32) return CUDNN_FMA_MATH;
  return dtype == Dtype::tf32 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

// The persistent algorithms take two biases only: what the problem has not is zero, and its
// gradient is dropped.
cudnnRNNBiasMode_t bias_of(Bias bias, cudnnRNNAlgo_t algo) {
  if (algo != CUDNN_RNN_ALGO_STANDARD) return CUDNN_RNN_DOUBLE_BIAS;
  if (bias == Bias::none) return CUDNN_RNN_NO_BIAS;
  return bias == Bias::one ? CUDNN_RNN_SINGLE_INP_BIAS : CUDNN_RNN_DOUBLE_BIAS;
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

Result<std::unique_ptr<Network>> Network::create(SessionPtr session, const Problem& problem,
                                                 const std::vector<int>& lengths,
                                                 const Algorithm& algorithm) {
  std::unique_ptr<Network> network(new Network(std::move(session), problem, lengths, algorithm));
  using Make = Status (Network::*)();
  for (const Make make : {&Network::make_dropout, &Network::make_network, Make(&Network::make_data),
                          &Network::make_states, &Network::load_lengths, &Network::size_spaces}) {
    if (Status status = (network.get()->*make)(); !status.ok()) return status.error();
  }
  return network;
}

// None without dropout: cuDNN takes a null descriptor for that.
Status Network::make_dropout() {
  if (problem_.dropout == 0) return {};
  std::size_t bytes = 0;
  Status status =
      RNNTUNE_CUDNN_CALL(*session_, cudnnDropoutGetStatesSize, session_->handle(), &bytes);
  if (!status.ok()) return status;
  Result<Buffer> states = Buffer::allocate(session_, bytes);
  if (!states.ok()) return states.error();
  dropout_states_ = std::move(*states);
  status = reference::cudnn::create(*session_, "cudnnCreateDropoutDescriptor",
                                    session_->cudnn().cudnnCreateDropoutDescriptor,
                                    session_->cudnn().cudnnDestroyDropoutDescriptor, dropout_);
  if (!status.ok()) return status;
  return RNNTUNE_CUDNN_CALL(*session_, cudnnSetDropoutDescriptor, dropout_.get(),
                            session_->handle(), float(problem_.dropout), dropout_states_.data(),
                            bytes, kDropoutSeed);
}

Status Network::make_network() {
  Status status = reference::cudnn::create(*session_, "cudnnCreateRNNDescriptor",
                                           session_->cudnn().cudnnCreateRNNDescriptor,
                                           session_->cudnn().cudnnDestroyRNNDescriptor, network_);
  if (!status.ok()) return status;
  const Problem& p = problem_;
  // A projection as wide as the state is how cuDNN says none. Unpacked layouts are those of
  // "padded" data.
  status = RNNTUNE_CUDNN_CALL(
      *session_, cudnnSetRNNDescriptor_v8, network_.get(), algorithm_.algo, mode_of(p.cell),
      bias_of(p.bias, algorithm_.algo),
      p.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
      data_type(p.dtype), CUDNN_DATA_FLOAT, math_of(p.dtype), std::int32_t(p.input),
      std::int32_t(p.hidden), std::int32_t(p.output()), std::int32_t(p.layers), dropout_.get(),
      algorithm_.layout == kPacked ? CUDNN_RNN_PADDED_IO_DISABLED : CUDNN_RNN_PADDED_IO_ENABLED);
  if (!status.ok() || algorithm_.algo != CUDNN_RNN_ALGO_PERSIST_DYNAMIC) return status;
  return RNNTUNE_CUDNN_CALL(*session_, cudnnBuildRNNDynamic, session_->handle(), network_.get(),
                            int(p.batch));
}

Status Network::make_data() {
  Status status = make_data(problem_.input, x_);
  return status.ok() ? make_data(problem_.directions * problem_.output(), y_) : status;
}

Status Network::make_data(std::int64_t width, Owned<cudnnRNNDataDescriptor_t>& data) const {
  Status status = reference::cudnn::create(*session_, "cudnnCreateRNNDataDescriptor",
                                           session_->cudnn().cudnnCreateRNNDataDescriptor,
                                           session_->cudnn().cudnnDestroyRNNDataDescriptor, data);
  if (!status.ok()) return status;
  std::uint32_t padding = 0;  // of what lies past the end of a sample; zero in every dtype
  return RNNTUNE_CUDNN_CALL(*session_, cudnnSetRNNDataDescriptor, data.get(),
                            data_type(problem_.dtype), algorithm_.layout, int(problem_.time),
                            int(problem_.batch), int(width), lengths_.data(), &padding);
}

Status Network::make_states() {
  Status status = make_state(problem_.output(), h_);
  return status.ok() ? make_state(problem_.hidden, c_) : status;
}

Status Network::make_state(std::int64_t width, Owned<cudnnTensorDescriptor_t>& state) const {
  Status status = reference::cudnn::create(*session_, "cudnnCreateTensorDescriptor",
                                           session_->cudnn().cudnnCreateTensorDescriptor,
                                           session_->cudnn().cudnnDestroyTensorDescriptor, state);
  if (!status.ok()) return status;
  const int sizes[] = {int(problem_.layers * problem_.directions), int(problem_.batch), int(width)};
  const int strides[] = {sizes[1] * sizes[2], sizes[2], 1};
  return RNNTUNE_CUDNN_CALL(*session_, cudnnSetTensorNdDescriptor, state.get(),
                            data_type(problem_.dtype), 3, sizes, strides);
}

// From 8.9.1 on cuDNN takes the lengths of the data descriptor and does not read these.
Status Network::load_lengths() {
  Result<Buffer> buffer = Buffer::allocate(session_, lengths_.size() * sizeof(std::int32_t));
  if (!buffer.ok()) return buffer.error();
  device_lengths_ = std::move(*buffer);
  return session_->device().to_device(device_lengths_.data(), lengths_.data(),
                                      device_lengths_.bytes(), session_->stream());
}

Status Network::size_spaces() {
  Status status = RNNTUNE_CUDNN_CALL(*session_, cudnnGetRNNWeightSpaceSize, session_->handle(),
                                     network_.get(), &weight_bytes_);
  if (!status.ok()) return status;
  return RNNTUNE_CUDNN_CALL(*session_, cudnnGetRNNTempSpaceSizes, session_->handle(),
                            network_.get(), CUDNN_FWD_MODE_TRAINING, x_.get(), &workspace_bytes_,
                            &reserve_bytes_);
}

Status Network::forward(const Tensors& t) const {
  return RNNTUNE_CUDNN_CALL(
      *session_, cudnnRNNForward, session_->handle(), network_.get(), CUDNN_FWD_MODE_TRAINING,
      static_cast<const std::int32_t*>(device_lengths_.data()), x_.get(), t.x, y_.get(), t.y,
      h_.get(), t.h_0, t.h_n, c_.get(), t.c_0, t.c_n, weight_bytes_, t.weights, workspace_bytes_,
      t.workspace, reserve_bytes_, t.reserve);
}

Status Network::backward_data(const Tensors& t) const {
  return RNNTUNE_CUDNN_CALL(*session_, cudnnRNNBackwardData_v8, session_->handle(), network_.get(),
                            static_cast<const std::int32_t*>(device_lengths_.data()), y_.get(), t.y,
                            t.dy, x_.get(), t.dx, h_.get(), t.h_0, t.dh_n, t.dh_0, c_.get(), t.c_0,
                            t.dc_n, t.dc_0, weight_bytes_, t.weights, workspace_bytes_, t.workspace,
                            reserve_bytes_, t.reserve);
}

Status Network::backward_weights(const Tensors& t) const {
  return RNNTUNE_CUDNN_CALL(*session_, cudnnRNNBackwardWeights_v8, session_->handle(),
                            network_.get(), CUDNN_WGRAD_MODE_ADD,
                            static_cast<const std::int32_t*>(device_lengths_.data()), x_.get(), t.x,
                            h_.get(), t.h_0, y_.get(), t.y, weight_bytes_, t.gradients,
                            workspace_bytes_, t.workspace, reserve_bytes_, t.reserve);
}

}  // namespace rnntune::reference::cudnn
