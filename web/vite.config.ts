import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// `npm run dev` shows the sources in front of a server that runs.
const server = process.env.STEPMILL_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
	plugins: [react(), tailwindcss()],
	resolve: {
		alias: {
			"@": here("./src"),
			"react-style-singleton": here("./src/ui/style-singleton.ts"),
		},
	},
	build: {
		outDir: "dist",
		emptyOutDir: true,
		assetsInlineLimit: 0,
		sourcemap: false,
		modulePreload: { polyfill: false },
		license: { fileName: "third-party-licenses.txt" },
	},
	worker: { format: "es" },
	server: { proxy: { "/ui": server, "/v1": server } },
	test: {
		// Two cores are common, of which Vitest would use one.
		maxWorkers: "100%",
		// A machine that is busy is no reason to fail.
		testTimeout: 60_000,
		projects: [
			{ extends: true, test: { name: "rules", include: ["src/**/*.test.ts"], environment: "node" } },
			{
				extends: true,
				test: {
					name: "components",
					include: ["src/**/*.test.tsx"],
					environment: "happy-dom",
					// What components import is read once for all files.
					isolate: false,
					setupFiles: ["src/test/setup.ts"],
				},
			},
		],
	},
});
