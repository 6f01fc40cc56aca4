#!/usr/bin/env python3
# Validates rendered manifests against the Kubernetes API schema, strictly, and what the cluster
# relies on: one coordinator, matching selectors, no container as root, requests everywhere.
# usage: check_manifests.py RENDERED.yaml...     needs PyYAML and kubernetes-validate (PyPI)
import sys

import kubernetes_validate
import yaml

CUSTOM = ("monitoring.coreos.com", "keda.sh")  # their schemas belong to their operators
failed = 0


def fault(path, item, text):
    global failed
    failed += 1
    print(f"{path}: {item['kind']} {item['metadata']['name']}: {text}")


def check_pods(path, item):
    template = item["spec"]["template"]
    pod = template["spec"]
    if not pod.get("securityContext", {}).get("runAsNonRoot"):
        fault(path, item, "runs as root")
    if "terminationGracePeriodSeconds" not in pod and item["metadata"]["name"] != "hyperopt-features":
        fault(path, item, "no terminationGracePeriodSeconds: a worker needs time to hand back")
    volumes = {v["name"] for v in pod.get("volumes", [])}
    volumes |= {c["metadata"]["name"] for c in item["spec"].get("volumeClaimTemplates", [])}
    for container in pod["containers"]:
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in volumes:
                fault(path, item, f"mounts {mount['name']}, which is not there")
        if "requests" not in container.get("resources", {}):
            fault(path, item, "no resource requests")
    wanted = item["spec"].get("selector", {}).get("matchLabels", {})
    if not wanted.items() <= template["metadata"]["labels"].items():
        fault(path, item, "the selector does not match its own pods")


for path in sys.argv[1:]:
    items = [i for i in yaml.safe_load_all(open(path)) if i]
    for item in items:
        if item["apiVersion"].split("/")[0] not in CUSTOM:
            try:
                kubernetes_validate.validate(item, "1.29", strict=True)
            except kubernetes_validate.ValidationError as error:
                fault(path, item, str(error)[:300])
        if item["kind"] in ("StatefulSet", "Job", "Deployment"):
            check_pods(path, item)
    coordinators = [i for i in items if i["kind"] == "StatefulSet"]
    if len(coordinators) != 1 or coordinators[0]["spec"]["replicas"] != 1:
        failed += 1
        print(f"{path}: there must be exactly one coordinator")
    print(f"{path}: {len(items)} objects")
sys.exit(1 if failed else 0)
