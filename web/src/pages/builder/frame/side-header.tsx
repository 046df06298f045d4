import type { ReactNode } from "react";
import { useEditor } from "@/pages/builder/state";
import { IconButton } from "@/ui/button";
import { CloseIcon } from "@/ui/icons";

/** SideHeader is the heading of a panel that replaces the settings, with a close button. */
export function SideHeader({ title, lead }: { title: string; lead?: ReactNode }) {
	const editor = useEditor();
	return (
		<div className="flex h-12 shrink-0 items-center gap-2 border-b pr-2 pl-4">
			<h2 className="font-semibold">{title}</h2>
			{lead && <span className="text-12 text-muted">{lead}</span>}
			<span className="flex-1" />
			<IconButton icon={CloseIcon} label="Close" onClick={() => editor.open("settings")} />
		</div>
	);
}
