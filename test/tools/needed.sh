# shellcheck shell=bash
# What make builds before the shell tests of a tier, in release. Sourced by tiers.sh and flakes.sh.
needed_of() { # TIER
    case $1 in
    integration) echo all build/release/fault/slow_link ;;
    operator) echo all build/release/test/operator/kube_try build/release/test/operator/kube_watch ;;
    attack) echo all build/release/attack/hostile_rpc build/release/test/operator/kube_watch ;;
    chart) echo all build/release/tools/crd build/release/tools/yaml2json ;;
    e2e) echo all build/release/test/operator/kube_watch ;;
    soak) echo build/release/test/operator/kube_watch ;;
    *) echo all ;;
    esac
}
