import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// `npm run dev` talks to a server that runs: with STEPMILL_KEY as the holder of
// that key, without it as whoever has signed in.
const server = process.env.STEPMILL_URL ?? "http://127.0.0.1:8080";
const key = process.env.STEPMILL_KEY;

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
	server: {
		proxy: {
			"/ui": key
				? { target: server, rewrite: (path) => path.replace(/^\/ui/, ""), headers: { Authorization: `Bearer ${key}` } }
				: { target: server, changeOrigin: true },
			"/v1": { target: server },
		},
	},
	test: { include: ["src/**/*.test.{ts,tsx}"], environment: "node" },
});
