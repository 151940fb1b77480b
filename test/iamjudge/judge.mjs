// Reads questions, one JSON document on each line, and answers each on one line.
// A question is {policy, action, resource, context}; an answer is {result, errors}.
//
// The parameters that AWS publishes (arn:aws:ssm:REGION::parameter/aws/service/…) are in no
// account, and the check of ARNs does not know them: it is omitted for them.
import { createInterface } from "node:readline";
import { runSimulation, runUnsafeSimulation } from "@cloud-copilot/iam-simulate";

const account = "123456789012";

// The policy that KMS gives a new key: the policies of IAM in its account decide.
const keyPolicy = {
  Version: "2012-10-17",
  Statement: [{ Effect: "Allow", Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: "kms:*", Resource: "*" }],
};

for await (const line of createInterface({ input: process.stdin })) {
  const { policy, action, resource, context } = JSON.parse(line);
  const simulation = {
    request: {
      principal: `arn:aws:iam::${account}:user/ada`,
      action,
      resource: { resource, accountId: account },
      contextVariables: context ?? {},
    },
    identityPolicies: [{ name: "policy", policy }],
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    resourcePolicy: action.startsWith("kms:") ? keyPolicy : undefined,
  };
  const answer = resource.includes("::parameter/aws/service/")
    ? { overallResult: runUnsafeSimulation(simulation, {}) }
    : await runSimulation(simulation, {});
  console.log(JSON.stringify({ result: answer.overallResult, errors: answer.errors }));
}
