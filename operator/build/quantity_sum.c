/* Sums of quantities, in thousandths. */
#include "build/quantity_sum.h"

#include "base/str.h"
#include "job/quantity.h"

int quantity_sum_add(struct quantity_sum *sum, const json_t *v, int times)
{
    double milli, total;
    bool binary;

    if (quantity_parse(v, &milli, &binary) < 0)
        return -1;
    total = (double)sum->milli + milli * times;
    if (!(milli >= 0 && total < 0x1p62))
        return -1;
    sum->milli += (int64_t)milli * times;
    sum->binary |= binary;
    return 0;
}

json_t *quantity_sum_value(const struct quantity_sum *sum)
{
    static const char *const BINARY[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi" };
    int64_t whole = sum->milli / 1000;
    size_t i = 0;

    if (sum->milli % 1000 != 0)
        return json_sprintf("%lldm", (long long)sum->milli);
    for (; sum->binary && whole != 0 && whole % 1024 == 0 && i + 1 < COUNT_OF(BINARY); i++)
        whole /= 1024;
    return json_sprintf("%lld%s", (long long)whole, BINARY[i]);
}
