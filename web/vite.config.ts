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
	},
	server: { proxy: { "/ui": server, "/v1": server } },
	// A machine that is busy is no reason to fail.
	test: { include: ["src/**/*.test.{ts,tsx}"], environment: "node", testTimeout: 60_000 },
});
