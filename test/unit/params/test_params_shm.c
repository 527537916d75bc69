/* Memory that is replaced while a gradient is being sent: the ps must read the gradient as it is when complete. */
#include "params_fixture.h"

#include "params/params_grpc.h"

#define SGD_PLAIN "{\"SGD\": {\"learning_rate\": 1.0}}"

START_TEST(memory_that_is_replaced_during_backward_gets_the_whole_gradient)
{
    static const struct form SHARED = { .name = "shared", .nps = 1, .share = true };
    struct world w;
    struct err e = { 0 };
    struct push_result result;
    float *grads;
    world_open(&w, &SHARED, large_layout());
    auto_free float *zeros = xcalloc(w.layout->vector, sizeof(float));
    bring_up(&w, SGD_PLAIN, zeros);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    ck_ok_e(params_gradients(w.worker, 0, &grads, &e));
    ck_ok_e(params_push(w.worker, 0, grads, CALL_MS, &result, &e));
    ck_assert_uint_eq(shard_service_shared(w.service[0]), 1);

    size_t half = w.layout->segments[2].offset;
    remote_of(w.worker)->conns[0].shm_unsettled = true; /* as after a call without an answer */
    for (size_t i = half; i < w.layout->vector; i++)
        grads[i] = 1;
    params_push_early(w.worker, 1, grads, half, CALL_MS);
    for (size_t i = 0; i < half; i++)
        grads[i] = 1;
    ck_ok_e(params_push(w.worker, 1, grads, CALL_MS, &result, &e));
    for (size_t i = 0; i < w.layout->n; i++) {
        const struct segment_spec *s = &w.layout->segments[i];
        float wanted = s->kind == VAR_CONST ? 0 : -1;
        ck_assert(params_vector(w.worker)[s->offset] == wanted);
        ck_assert(params_vector(w.worker)[s->offset + s->count - 1] == wanted);
    }
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("params_shm");
    TCase *t = tcase_create("params_shm");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, memory_that_is_replaced_during_backward_gets_the_whole_gradient);
    suite_add_tcase(s, t);
    return s;
}
