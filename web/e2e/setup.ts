import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
	interface ProvidedContext {
		/** The program under test. */
		binary: string;
		/** The folder for the data of its servers. */
		data: string;
	}
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Builds the program with the dashboard in web/dist, or takes the one in STEPMILL_BINARY. */
export default function setup(project: TestProject): () => void {
	mkdirSync(join(root, "web/e2e/shots"), { recursive: true });
	const given = process.env.STEPMILL_BINARY;
	if (!given && !existsSync(join(root, "web/dist/index.html")))
		throw new Error("build the dashboard first: npm run build");
	const folder = mkdtempSync(join(tmpdir(), "stepmill-e2e-"));
	project.provide("data", folder);
	project.provide("binary", given || build(folder));
	// Here, because the workers are ended before they could tidy up.
	return () => rmSync(folder, { recursive: true, force: true });
}

function build(folder: string): string {
	const binary = join(folder, "stepmill");
	execFileSync("go", ["build", "-o", binary, "./cmd/stepmill"], { cwd: root, stdio: "inherit" });
	return binary;
}
