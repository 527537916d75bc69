#include "chief_fixture.h"

#include "base/stop.h"
#include "chief/checkpoint.h"
#include "chief/output_dir.h"
#include "shard/generation.h"

static struct checkpoint *latest(const char *output)
{
    auto_free char *folder = output_dir_path(output, "checkpoints");
    struct err e = { 0 };
    struct checkpoint *c = NULL;
    auto_free char *damaged = NULL;
    ck_ok_e(checkpoint_open_whole(folder, &c, &damaged, &e));
    ck_assert_ptr_null(damaged);
    return c;
}

static void want_saved(struct ps_fixture *ps, int64_t step, float cells)
{
    struct err e = { 0 };
    AUTO(checkpoint) *c = latest(ps->job.dir);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(checkpoint_step(c), step);
    auto_free float *vector = xcalloc(model_size(ps->job.model), sizeof(*vector));
    ck_ok_e(checkpoint_values(c, ps->job.model, vector, &e));
    want_cells(&ps->job, vector, cells);
}

START_TEST(a_job_from_beginning_to_end)
{
    struct ps_fixture ps;
    struct leader l;
    struct worker w;
    struct err e = { 0 };
    struct shard_info info;
    int64_t step = 0;
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 3");
    leader_open(&l, &ps, ps.job.dir);
    lead(&l);
    work(&w, &ps, &l);
    join(&w, &l);
    ck_assert_msg(l.result == 0, "%s", l.error.msg);
    want_saved(&ps, 3 * JOB_BATCHES, 3 * JOB_BATCHES);
    ck_assert_int_eq(output_dir_finished(ps.job.dir, JOB_UID, &step, &e), 1);
    ck_assert_int_eq(step, 3 * JOB_BATCHES);
    for (size_t i = 0; i < PS_COUNT; i++) {
        shard_brief(ps.shard[i], &info);
        ck_assert_int_eq((int)info.state, SHARD_FINISHED);
    }
    struct chief_numbers n;
    chief_numbers(l.chief, &n);
    ck_assert(n.done == 3 * JOB_BATCHES && n.checkpoint_step == 3 * JOB_BATCHES && n.restored == PS_COUNT);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

START_TEST(a_finished_job_only_says_so)
{
    struct ps_fixture ps;
    struct leader l;
    struct shard_info info;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 1");
    leader_open(&l, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    struct job_result end = { .step = 10, .stopped_epoch = -1 };
    AUTO_FINI(buf) progress = BUF_INIT;
    memset(end.weights_sha256, 'a', SHA256_TEXT - 1);
    ck_ok_e(output_dir_set_finished(ps.job.dir, JOB_UID, &end, &e));
    ck_ok_e(chief_run(l.chief, &e));
    chief_progress(l.chief, &progress);
    ck_assert_msg(strstr(progress.data, end.weights_sha256) != NULL, "%s", progress.data);
    shard_brief(ps.shard[0], &info);
    ck_assert_int_eq((int)info.state, SHARD_FINISHED);
    ck_assert_ptr_null(latest(ps.job.dir));
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

START_TEST(a_lost_ps_is_restored_and_owed_the_rest)
{
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    AUTO(params) *worker = ps_params(&ps, "worker-0", JOB_UID);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    ps_push(&ps, worker, l.chief->generation, 0, 6);
    ck_ok_e(chief_save(l.chief, &e));
    ps_push(&ps, worker, l.chief->generation, 6, 9);
    ps_stop(&ps, 1);
    ck_fails(chief_save(l.chief, &e), ERR_LOST, "ps-1");
    want_saved(&ps, 6, 6);
    ps_start(&ps, 1, 555);
    uint64_t before = l.chief->generation;
    ck_ok_e(chief_initialise_ps(l.chief, before, &e));
    ck_assert_uint_eq(l.chief->generation, before + 1);
    AUTO_FINI(ps_set_view) v = { 0 };
    ps_set_poll(l.chief->ps_set, WAIT_MS, &v);
    ck_assert(v.condition == PS_SET_READY && v.done.low == 6 && v.step == 6);
    ps_push(&ps, worker, l.chief->generation, 6, 12);
    ps_want_cells(&ps, worker, l.chief->generation, 12);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

START_TEST(a_new_chief_adopts_and_the_old_one_writes_no_more)
{
    struct ps_fixture ps;
    struct leader old, new;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&old, &ps, ps.job.dir);
    AUTO(params) *worker = ps_params(&ps, "worker-0", JOB_UID);
    ck_ok_e(chief_initialise_ps(old.chief, 0, &e));
    ps_push(&ps, worker, old.chief->generation, 0, 4);
    ck_ok_e(chief_save(old.chief, &e));
    ps_push(&ps, worker, old.chief->generation, 4, 7);

    leader_open(&new, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(new.chief, 0, &e));
    ck_assert_uint_gt(new.chief->generation, old.chief->generation);
    ck_assert_uint_eq(atomic_load(&new.chief->restored), 0); /* kept, not read back */
    ps_want_cells(&ps, worker, new.chief->generation, 7);
    ck_fails(chief_save(old.chief, &e), ERR_FENCED, "");
    want_saved(&ps, 4, 4);
    leader_close(&old);
    leader_close(&new);
    ps_close(&ps);
}
END_TEST

START_TEST(a_chief_that_leads_leaves_when_a_newer_one_came)
{
    struct ps_fixture ps;
    struct leader old, new;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&old, &ps, ps.job.dir);
    leader_open(&new, &ps, ps.job.dir);
    lead(&old);
    struct chief_numbers n = { .checkpoint_step = -1 };
    ck_wait((chief_numbers(old.chief, &n), n.checkpoint_step >= 0));
    ck_ok_e(chief_initialise_ps(new.chief, 0, &e));
    thread_join(&old.thread);
    ck_assert_msg(old.result == -1 && err_is(&old.error, ERR_FENCED), "%s", old.error.msg);
    ck_assert_msg(str_ends(old.error.msg, ": a newer chief is in charge"), "%s", old.error.msg);
    leader_close(&old);
    leader_close(&new);
    ps_close(&ps);
}
END_TEST

static void write_generation(struct ps_fixture *ps, uint64_t number, uint64_t incarnation)
{
    auto_free char *path = output_dir_path(ps->job.dir, "generation");
    struct err e = { 0 };
    char line[64];
    str_fmt(line, sizeof(line), "%llu %016llx\n", (unsigned long long)number, (unsigned long long)incarnation);
    ck_ok_e(file_write(path, line, strlen(line), &e));
}

START_TEST(the_generation_of_the_volume_fences_while_no_ps_knows_it)
{
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    write_generation(&ps, l.chief->generation + 1, 77); /* a newer chief begins */
    ck_fails(chief_save(l.chief, &e), ERR_FENCED, "has begun");
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

static struct generation on_volume(struct ps_fixture *ps)
{
    struct generation g = { 0 };
    struct err e = { 0 };
    ck_ok_e(generation_read(ps->job.dir, &g, &e));
    return g;
}

/* Two chiefs that claimed the same generation: the one in the file is in charge, whatever the ps report. */
START_TEST(the_same_generation_of_another_chief_fences_too)
{
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    ck_assert_uint_eq(on_volume(&ps).incarnation, (uint64_t)(uintptr_t)&l);
    write_generation(&ps, l.chief->generation, 77);
    ck_fails(chief_save(l.chief, &e), ERR_FENCED, "has begun");
    ck_assert_ptr_null(latest(ps.job.dir));
    bool finished;
    ck_fails(chief_finish(l.chief, &finished, &e), ERR_FENCED, "has begun");
    int64_t step;
    ck_assert_int_eq(output_dir_finished(ps.job.dir, JOB_UID, &step, &e), 0);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

/* The old chief was paused while a newer one started. The ps, which alone had the newer one's generation, lost its
 * state. */
START_TEST(a_chief_that_slept_does_not_restore_a_ps)
{
    struct ps_fixture ps;
    struct leader old, new;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&old, &ps, ps.job.dir);
    leader_open(&new, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(old.chief, 0, &e));
    ck_ok_e(chief_initialise_ps(new.chief, 0, &e));
    struct generation in_charge = on_volume(&ps);
    for (size_t i = 0; i < PS_COUNT; i++) {
        ps_stop(&ps, i);
        ps_start(&ps, i, 900 + i);
    }
    ck_fails(chief_initialise_ps(old.chief, 0, &e), ERR_FENCED, "has begun");
    struct generation now = on_volume(&ps);
    ck_assert(generation_eq(&now, &in_charge));
    struct shard_info info;
    shard_brief(ps.shard[0], &info);
    ck_assert_uint_eq(info.generation, 0); /* it sent them no request */
    leader_close(&old);
    leader_close(&new);
    ps_close(&ps);
}
END_TEST

/* The volume is new, and the ps did not answer when the chief began. A chief that the ps refuse takes a higher
 * generation, once. */
START_TEST(a_refused_chief_that_the_file_names_takes_a_higher_one)
{
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    AUTO(params) *other = ps_params_as(&ps, "chief-0", JOB_UID, 77);
    AUTO(ps_set) *theirs = ps_set_new(other, ps.job.layout, ps.placement, model_optimizer(ps.job.model), JOB_UID, NULL);
    params_set_generation(other, 30);
    for (size_t i = 0; i < PS_COUNT; i++)
        ck_ok_e(params_init(other, i, "{\"Counting\": {}}", PS_CALL_MS, &e));
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e)); /* 1, then 31 */
    ck_assert_uint_eq(l.chief->generation, 31);
    ck_assert_uint_eq(on_volume(&ps).number, 31);
    ps_set_fence(theirs, 40); /* no ps served it, so it need not be followed */
    struct shard_info info;
    shard_brief(ps.shard[0], &info);
    ck_assert_uint_eq(info.generation, 40);
    ck_fails(chief_initialise_ps(l.chief, 0, &e), ERR_FENCED, "generation 40"); /* not a second time */
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

/* The user deleted the folder: the ps still have this chief, so it goes on and writes its files again. */
START_TEST(a_deleted_folder_does_not_depose_a_chief)
{
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    auto_free char *command =
        xasprintf("rm -rf %s/checkpoints %s/generation* %s/uid", ps.job.dir, ps.job.dir, ps.job.dir);
    ck_assert_int_eq(system(command), 0);
    ck_ok_e(output_dir_prepare(ps.job.dir, NULL, &e));
    ck_ok_e(chief_save(l.chief, &e));
    ck_assert_uint_eq(on_volume(&ps).number, l.chief->generation);
    ck_assert_uint_eq(on_volume(&ps).incarnation, (uint64_t)(uintptr_t)&l);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

/* Both wait for a ps that does not start: the chief that is no longer in charge learns so without that ps. */
START_TEST(a_chief_that_waits_for_a_ps_sees_a_newer_one)
{
    struct ps_fixture ps;
    struct leader l;
    struct chief_numbers n = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    ps_stop(&ps, 1);
    lead(&l);
    ck_wait((chief_numbers(l.chief, &n), n.generation != 0));
    write_generation(&ps, n.generation + 1, 77);
    thread_join(&l.thread);
    ck_assert_msg(l.result == -1 && err_is(&l.error, ERR_FENCED), "%s", l.error.msg);
    ps_start(&ps, 1, 500);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

/* A new chief removes the half-written files of its killed predecessor, and nothing else. */
START_TEST(leftovers_of_killed_saves_go)
{
    static const char *const left[] = { "checkpoints/model.ckpt-40.data-00000-of-00001.tmp.1.0",
                                        "checkpoints/checkpoint.tmp.22.1", "checkpoints/model.ckpt-40.index.tmp.1.0",
                                        "history.json.tmp.1.0", "generation.4.tmp.9.0" };
    static const char *const others[] = { "notes.tmp.1.0", "checkpoints/best.tmp.1.0" };
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    for (size_t i = 0; i < COUNT_OF(left) + COUNT_OF(others); i++) {
        auto_free char *path = output_dir_path(ps.job.dir, i < COUNT_OF(left) ? left[i] : others[i - COUNT_OF(left)]);
        ck_ok_e(file_write(path, "half", 4, &e));
    }
    AUTO(file_out) *living = NULL; /* the save of a chief that is no longer in charge */
    auto_free char *path = output_dir_path(ps.job.dir, "checkpoints/model.ckpt-50.index");
    ck_ok_e(file_out_open(path, &living, &e));
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        auto_free char *gone = output_dir_path(ps.job.dir, left[i]);
        ck_assert_msg(!file_exists(gone), "%s", gone);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        auto_free char *kept = output_dir_path(ps.job.dir, others[i]);
        ck_assert_msg(file_exists(kept), "%s", kept);
    }
    ck_ok_e(file_out_commit(living, &e));
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

START_TEST(a_lost_volume_does_not_bring_old_generations_back)
{
    struct ps_fixture ps;
    struct leader l;
    struct worker w;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 1");
    leader_open(&l, &ps, ps.job.dir);
    ck_ok_e(chief_initialise_ps(l.chief, 41, &e)); /* generation 42 */
    leader_close(&l);
    auto_free char *path = output_dir_path(ps.job.dir, "generation");
    ck_ok_e(file_remove(path, &e));
    leader_open(&l, &ps, ps.job.dir);
    lead(&l);
    work(&w, &ps, &l);
    join(&w, &l);
    ck_assert_msg(l.result == 0 && l.chief->generation > 42, "%s", l.error.msg);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

START_TEST(all_at_once_resumes_from_the_checkpoint)
{
    struct ps_fixture ps;
    struct leader l;
    struct worker w;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    AUTO(params) *worker = ps_params(&ps, "worker-0", JOB_UID);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    ps_push(&ps, worker, l.chief->generation, 2, 8);
    ck_ok_e(chief_save(l.chief, &e));
    leader_close(&l);
    for (size_t i = 0; i < PS_COUNT; i++) {
        ps_stop(&ps, i);
        ps_start(&ps, i, 900 + i);
    }
    leader_open(&l, &ps, ps.job.dir);
    lead(&l);
    work(&w, &ps, &l);
    join(&w, &l);
    ck_assert_msg(l.result == 0, "%s", l.error.msg);
    ck_assert_int_ge(atomic_load(&w.stats.steps),
                     2 * JOB_BATCHES - 6); /* one may be computed twice, never applied twice */
    want_saved(&ps, 2 * JOB_BATCHES, 2 * JOB_BATCHES);
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

/* The last test: stop_count() stays. */
START_TEST(a_signal_saves_everything_first)
{
    struct ps_fixture ps;
    struct leader l;
    struct err e = { 0 };
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&l, &ps, ps.job.dir);
    AUTO(params) *worker = ps_params(&ps, "worker-0", JOB_UID);
    ck_ok_e(chief_initialise_ps(l.chief, 0, &e));
    ps_push(&ps, worker, l.chief->generation, 0, 5);
    stop_request();
    uint64_t before = l.chief->generation;
    ck_assert_int_eq(chief_run(l.chief, &l.error), -1);
    ck_assert_msg(err_is(&l.error, ERR_STOPPED), "%s", l.error.msg);
    want_saved(&ps, 5, 5);
    struct push_result result;
    float grads[256] = { 0 };
    params_set_generation(worker, before);
    ck_fails(params_push(worker, 5, grads, PS_CALL_MS, &result, &e), ERR_FENCED, "");
    leader_close(&l);
    ps_close(&ps);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("chief");
    TCase *t = tcase_create("chief");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_job_from_beginning_to_end);
    tcase_add_test(t, a_finished_job_only_says_so);
    tcase_add_test(t, a_lost_ps_is_restored_and_owed_the_rest);
    tcase_add_test(t, a_new_chief_adopts_and_the_old_one_writes_no_more);
    tcase_add_test(t, a_chief_that_leads_leaves_when_a_newer_one_came);
    tcase_add_test(t, the_generation_of_the_volume_fences_while_no_ps_knows_it);
    tcase_add_test(t, the_same_generation_of_another_chief_fences_too);
    tcase_add_test(t, a_chief_that_slept_does_not_restore_a_ps);
    tcase_add_test(t, a_refused_chief_that_the_file_names_takes_a_higher_one);
    tcase_add_test(t, a_deleted_folder_does_not_depose_a_chief);
    tcase_add_test(t, a_chief_that_waits_for_a_ps_sees_a_newer_one);
    tcase_add_test(t, leftovers_of_killed_saves_go);
    tcase_add_test(t, a_lost_volume_does_not_bring_old_generations_back);
    tcase_add_test(t, all_at_once_resumes_from_the_checkpoint);
    tcase_add_test(t, a_signal_saves_everything_first);
    suite_add_tcase(s, t);
    return s;
}
