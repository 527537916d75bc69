#include "check_main.h"

#include <string.h>

#include "job/cluster.h"

/* The estimate is never below what is written, and not far above it. */
static void fill(const struct cluster_names *n, struct cluster *c)
{
    *c = (struct cluster){ .configured = true };
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < n->replicas[r]; i++) {
            auto_free char *own = xasprintf("%s.", n->job), *domain = xasprintf(".%s", n->domain);
            auto_free char *host =
                xasprintf("%s-%s-%d.%s%s.svc%s:65535", n->job, role_name((enum role)r), i,
                          n->service_per_replica ? "" : own, n->ns, n->domain[0] != '\0' ? domain : "");
            strlist_add(&c->hosts[r], host);
        }
}

static size_t written(const struct cluster_names *n)
{
    AUTO_FINI(cluster) c;
    fill(n, &c);
    auto_free char *text = cluster_to_tf_config(&c, ROLE_WORKER, MAX(n->replicas[ROLE_WORKER] - 1, 0));
    return strlen(text);
}

static const struct cluster_names NAMES[] = {
    { .job = "a", .ns = "a", .domain = "", .service_per_replica = true },
    { .job = "mnist",
      .ns = "default",
      .domain = "",
      .service_per_replica = true,
      .replicas = { [ROLE_PS] = 20, [ROLE_CHIEF] = 1 } },
    { .job = "mnist",
      .ns = "default",
      .domain = "cluster.local",
      .service_per_replica = true,
      .replicas = { [ROLE_PS] = 20, [ROLE_EVALUATOR] = 1 } },
    { .job = "resnet-50-imagenet", .ns = "computer-vision", .domain = "" },
    { .job = "a-name-of-fifty-one-characters-which-is-the-longest",
      .ns = "a-namespace-of-sixty-three-characters-which-is-the-longest-name-",
      .domain = "cluster.local" },
};
static const int MOST[] = { 4500, 3450, 2600, 1700, 640 }; /* about the docs' values for short, usual and long names */

START_TEST(as_many_as_fit_are_accepted)
{
    struct cluster_names n = NAMES[_i];
    int low = 1, high = 20000;
    while (high - low > 1) {
        n.replicas[ROLE_WORKER] = (low + high) / 2;
        auto_free char *text = cluster_too_large(&n);
        *(text == NULL ? &low : &high) = n.replicas[ROLE_WORKER];
    }
    n.replicas[ROLE_WORKER] = low;
    ck_assert_uint_le(written(&n), TF_CONFIG_MAX);
    ck_assert_uint_ge(written(&n), TF_CONFIG_MAX - 400);
    ck_assert_msg(low > MOST[_i] * 9 / 10 && low < MOST[_i] * 11 / 10, "%d workers", low);
    n.replicas[ROLE_WORKER] = low + 1;
    auto_free char *text = cluster_too_large(&n);
    int others = n.replicas[ROLE_PS] + n.replicas[ROLE_CHIEF] + n.replicas[ROLE_EVALUATOR];
    auto_free char *begin = xasprintf("TF_CONFIG would list %d replicas in about ", low + 1 + others);
    auto_free char *about = xasprintf("about %d replicas with these names", low + others);
    ck_assert_msg(str_starts(text, begin) && strstr(text, about) != NULL, "%s", text);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cluster_size");
    TCase *t = tcase_create("cluster_size");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, as_many_as_fit_are_accepted, 0, COUNT_OF(NAMES));
    suite_add_tcase(s, t);
    return s;
}
