#include "base/mem.h"
#include "check_main.h"
#include "rpc/peer_id.h"

static const struct {
    const char *one, *other;
    bool same;
} CASES[] = {
    { "ipv4:10.0.0.7:41234", "ipv4:10.0.0.7:41235", true },
    { "ipv4:10.0.0.7:41234", "ipv4:10.0.0.8:41234", false },
    { "ipv6:%5Bfd00::7%5D:41234", "ipv6:%5Bfd00::7%5D:9", true },
    { "ipv6:%5Bfd00::7%5D:41234", "ipv6:%5Bfd00::8%5D:41234", false },
    { "ipv4:127.0.0.1:41234", "ipv4:127.0.0.1:41235", false }, /* two processes of this machine */
    { "ipv6:%5B::1%5D:41234", "ipv6:%5B::1%5D:41235", false },
    { "", "unknown", false },
};

START_TEST(a_caller_is_an_address)
{
    uint64_t one = rpc_peer_id(CASES[_i].one), other = rpc_peer_id(CASES[_i].other);
    ck_assert(one != 0 && other != 0);
    ck_assert_msg((one == other) == CASES[_i].same, "%s and %s", CASES[_i].one, CASES[_i].other);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("peer_id");
    TCase *c = tcase_create("all");
    tcase_add_loop_test(c, a_caller_is_an_address, 0, COUNT_OF(CASES));
    suite_add_tcase(s, c);
    return s;
}
