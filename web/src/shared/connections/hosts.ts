// The hosts of a custom connection, as people type them.

const url = /^(https?):\/\/([^/?#@\\*]+)(?:[/?#].*)?$/i;

/** hostsOf returns the hosts in a text. Of a URL it takes the host, with its scheme only if that is http. */
export function hostsOf(text: string): string[] {
	const typed = text.split(/[\s,]+/).filter(Boolean);
	const hosts = typed.map((one) => {
		const [, scheme = "", host = ""] = url.exec(one) ?? [];
		if (host === "") return one;
		return scheme.toLowerCase() === "http" ? `http://${host}` : host;
	});
	return [...new Set(hosts)];
}

/** originOf returns where a host is: a host without a scheme is one with TLS. */
export function originOf(host: string): string {
	return host.includes("://") ? host : `https://${host}`;
}

/** plainHost returns the host to enter in place of one that a URL uses without TLS, if there is one. */
export function plainHost(hosts: readonly string[], used: string): { listed: string; plain: string } | undefined {
	const [, scheme = "", host = ""] = url.exec(used.trim()) ?? [];
	if (scheme.toLowerCase() !== "http" || host === "") return undefined;
	const listed = hosts.find((one) => one.toLowerCase() === host.toLowerCase());
	return listed === undefined || hosts.includes(`http://${host}`) ? undefined : { listed, plain: `http://${host}` };
}
