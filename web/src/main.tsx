import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "./styles/index.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { onSignedOut } from "./api/client";
import { queries } from "./api/query";
import { recovery } from "./api/recovery";
import { stream } from "./live/hooks";
import { router } from "./router";
import { redirectToSignIn } from "./shell/require-session";
import { Toasts } from "./ui/toast";
import { TooltipProvider } from "./ui/tooltip";

onSignedOut(() => redirectToSignIn(router));
stream.watch(() => stream.status.state === "live" && recovery.recover());

const root = document.getElementById("root");
if (root) {
	createRoot(root).render(
		<StrictMode>
			<QueryClientProvider client={queries}>
				<TooltipProvider>
					<RouterProvider router={router} />
					<Toasts />
				</TooltipProvider>
			</QueryClientProvider>
		</StrictMode>,
	);
}
