/** What to look at for a code of an error, where there is something to be said. */
const hints: Record<string, string> = {
	run_timeout: "Raise the time limit in the workflow's settings, or find the step that takes long in the timeline.",
	state_too_large: "Keep less: let steps return only what later steps need.",
	quarantined: "The service stopped while this step was executed. Look at what it does before you retry.",
	secret_missing: "Add the secret again under Secrets & variables, then retry.",
	approval_timed_out: "Nobody answered in time. Retry to ask again.",
	chain_depth_exceeded: "Workflows start each other in a circle, or more than ten deep.",
	run_failed: "Open the run that this step started to see why it failed.",
	expression_failed: "Compare the expression with the data it had: the Output of the steps before shows it.",
	expression_cost_exceeded: "The expression goes through too much data. A JavaScript step can do more.",
	http_error: "The server's answer is under Output. A 4xx means that the request is not accepted as it is.",
	egress_denied: "The address is private. The operator of this server can allow its range with --egress-allow.",
	connection_failed: "The server could not be reached. If it is up again, retry from here.",
	timed_out: "Give the step a longer timeout, or retry when the other side is quicker.",
	tls_failed: "Check the certificate of the server.",
	invalid_input: "A value that was worked out does not fit. Compare Input with what the action expects.",
	script_error: "The message says where. What console.log wrote is under Logs.",
	script_timeout: "The script takes too long: let it do less, or raise the step's timeout.",
	script_memory: "The script uses too much memory: let it work on less data.",
	step_limit_exceeded: "The plan limits the steps of a run. Split the work over several runs.",
	repeat_limit_exceeded: "The condition never held. Look at the last round, or allow more rounds.",
	output_too_large: "Let the step return only what later steps need.",
	internal_error: "Retry it. If it fails again, the server's log says more.",
};

export function hintFor(code: string): string | undefined {
	return hints[code];
}
