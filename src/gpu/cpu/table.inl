template <class Real>
constexpr Kernels<Real> make_table() {
  return {.product = product<Real>,
          .mix = mix<Real>,
          .axpy = axpy<Real>,
          .add_difference = add_difference<Real>,
          .add_difference_and_copy = add_difference_and_copy<Real>,
          .scale = scale<Real>,
          .divide = divide<Real>,
          .update = update<Real>,
          .activate = activate<Real>,
          .activation_backward = activation_backward<Real>,
          .gelu = gelu<Real>,
          .gelu_backward = gelu_backward<Real>,
          .exponential = exponential<Real>,
          .column_sums = column_sums<Real>,
          .max_pool = max_pool<Real>,
          .max_pool_backward = max_pool_backward<Real>,
          .channel_products = channel_products<Real>,
          .channel_affine = channel_affine<Real>,
          .channel_affine2 = channel_affine2<Real>};
}
