import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
	interface ProvidedContext {
		/** The binary under test. */
		binary: string;
		/** The directory for the data of the servers. */
		data: string;
	}
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Builds the binary with the dashboard in web/dist, or uses the one in STEPMILL_BINARY. */
export default function setup(project: TestProject): () => void {
	mkdirSync(join(root, "web/e2e/shots"), { recursive: true });
	const given = process.env.STEPMILL_BINARY;
	if (!given && !existsSync(join(root, "web/dist/index.html")))
		throw new Error("build the dashboard first: npm run build");
	const folder = mkdtempSync(join(tmpdir(), "stepmill-e2e-"));
	project.provide("data", folder);
	project.provide("binary", given || build(folder));
	// Cleaned up here, because the workers are killed before they can do it.
	return () => rmSync(folder, { recursive: true, force: true });
}

function build(folder: string): string {
	const binary = join(folder, "stepmill");
	execFileSync("go", ["build", "-o", binary, "./cmd/stepmill"], { cwd: root, stdio: "inherit" });
	return binary;
}
