/** Hints for error codes. */
const hints: Record<string, string> = {
	run_timeout: "Raise the time limit in the workflow's settings, or find the slow step in the timeline.",
	state_too_large: "Let steps return only what later steps need.",
	quarantined: "The service stopped while this step was running. Check what the step does before you retry.",
	secret_missing: "Add the secret again under Secrets & variables, then retry.",
	approval_timed_out: "Nobody decided in time. Retry to ask again.",
	chain_depth_exceeded: "Workflows start each other in a cycle, or more than ten levels deep.",
	run_failed: "Open the run that this step started to see why it failed.",
	expression_failed: "Compare the expression with the data it used: check the Output of earlier steps.",
	expression_cost_exceeded: "The expression processes too much data. Use a JavaScript step instead.",
	egress_denied: "The address is private. The operator of this server can allow it with --egress-allow.",
	connection_failed: "The server could not be reached. Retry once it is up again.",
	timed_out: "Give the step a longer timeout, or retry when the server responds faster.",
	tls_failed: "Check the server's certificate.",
	graphql_errors: "The service rejected the query, or a part of it. Its errors are in Output, the query is in Input.",
	invalid_input: "An evaluated value is not valid. Compare Input with what the action expects.",
	script_error: "The message says where. The output of console.log is under Logs.",
	script_timeout: "The script takes too long. Let it do less, or raise the step's timeout.",
	script_memory: "The script uses too much memory. Let it process less data.",
	step_limit_exceeded: "The plan limits the number of steps per run. Split the work into several runs.",
	repeat_limit_exceeded: "The condition was never met. Check the last round, or allow more rounds.",
	output_too_large: "Let the step return only what later steps need.",
	internal_error: "Retry. If it fails again, check the server's log.",
};

/** httpHint returns advice for a response status. */
function httpHint(status: number | undefined): string {
	if (status === undefined)
		return "A 4xx status means that the server rejected the request: check what was sent. A 5xx status means that it failed: retry later.";
	if (status === 401 || status === 403)
		return "The server rejected the request. Check the credentials and their permissions.";
	if (status === 429) return "The server received too many requests. Retry later, or send fewer at a time.";
	if (status >= 500) return "The server failed. This may be temporary: retry when it works again.";
	if (status >= 400) return "The server rejected the request. Check what was sent, under Input.";
	return "The step treats this status as a failure because of its fail_on setting.";
}

/** hintFor returns the hint for an error code. `status` is the response status of an http_error. */
export function hintFor(code: string, status?: number): string | undefined {
	return code === "http_error" ? httpHint(status) : hints[code];
}
