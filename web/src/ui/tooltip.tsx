import { Tooltip as Radix } from "radix-ui";
import type { ReactNode } from "react";

export const TooltipProvider = Radix.Provider;

/** Tooltip repeats the name of a control. It must never be the only source of information. */
export function Tooltip({
	text,
	children,
	side = "bottom",
}: {
	text: ReactNode;
	children: ReactNode;
	side?: "top" | "bottom" | "left" | "right";
}) {
	return (
		<Radix.Root delayDuration={400}>
			<Radix.Trigger asChild>{children}</Radix.Trigger>
			<Radix.Portal>
				<Radix.Content
					side={side}
					sideOffset={6}
					collisionPadding={8}
					className="z-50 max-w-72 animate-appear rounded-6 bg-text px-2 py-1 text-12 text-canvas shadow-lift"
				>
					{text}
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}
