import { describe, expect, it } from "vitest";
import { hostsOf, originOf, plainHost } from "./hosts";

describe("the hosts of a connection", () => {
	it("are typed as hosts or as URLs", () => {
		expect(hostsOf("api.example.com\nhttps://api.example.com/v1?x=1, http://10.0.0.5:3000/")).toEqual([
			"api.example.com",
			"http://10.0.0.5:3000",
		]);
		expect(hostsOf("HTTPS://Api.Example.com:8443/")).toEqual(["Api.Example.com:8443"]);
	});

	it("are left to the server if they are neither", () => {
		for (const text of ["*.example.com", "ftp://example.com", "https://ada@example.com/", "example.com/path"])
			expect(hostsOf(text)).toEqual([text]);
	});

	it("have TLS unless they say http", () => {
		expect(originOf("127.0.0.1:9701")).toBe("https://127.0.0.1:9701");
		expect(originOf("http://127.0.0.1:9701")).toBe("http://127.0.0.1:9701");
	});

	it("are compared with the scheme of a URL on them", () => {
		const wanted = { listed: "127.0.0.1:9701", plain: "http://127.0.0.1:9701" };
		expect(plainHost(["127.0.0.1:9701"], "http://127.0.0.1:9701/me")).toEqual(wanted);
		expect(plainHost(["127.0.0.1:9701"], "https://127.0.0.1:9701/me")).toBeUndefined();
		expect(plainHost(["127.0.0.1:9701", "http://127.0.0.1:9701"], "http://127.0.0.1:9701/me")).toBeUndefined();
		expect(plainHost(["other.example"], "http://127.0.0.1:9701/me")).toBeUndefined();
		expect(plainHost([], "")).toBeUndefined();
	});
});
