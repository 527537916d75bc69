/* operator_options - the operator's flags. */
#ifndef TRAINYARD_OPERATOR_OPERATOR_OPTIONS_H
#define TRAINYARD_OPERATOR_OPERATOR_OPTIONS_H

#include "base/log.h"
#include "base/opt.h"
#include "job/job.h"

struct operator_options { /* strings point into argv and the environment */
    const char *kubeconfig, *context;
    struct strlist namespaces, scraper_namespaces;
    int64_t qps, burst, workers;
    bool leader_elect;
    const char *lease_name, *lease_ns;
    int64_t lease_s;
    bool assign_user;
    const char *architecture;
    const char *trainer_image, *pull_policy, *tensorboard_image, *gang_scheduler, *cluster_domain;
    bool trainjob, tfjob, network_policy, insecure;
    int64_t certificate_s, force_delete_s, tfjob_force_delete_s, progress_s;
    const char *clean_policy_text;
    enum clean_pod_policy tfjob_clean;
    const char *metrics_address, *health_address, *log_level, *log_format;
    enum log_level level;
    enum log_format format;
    const char *pod_name, *pod_ns, *pod_uid; /* POD_NAME, POD_NAMESPACE, POD_UID; may be NULL */
};
void operator_options_fini(struct operator_options *o);
DEFINE_AUTO_FINI(operator_options, operator_options_fini);
MUST_USE int operator_options_parse(int argc, char **argv, struct operator_options *ret, enum opt_result *ret_result,
                                    struct err *e);

#endif
