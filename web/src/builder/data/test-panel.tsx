import { useEditor } from "@/builder/state";
import { IconButton } from "@/ui/button";
import { CloseIcon } from "@/ui/icons";

export function TestPanel() {
	const editor = useEditor();
	return (
		<div className="flex items-center justify-between px-4 py-2">
			<h2 className="font-semibold">Test</h2>
			<IconButton icon={CloseIcon} label="Close" onClick={() => editor.test(false)} />
		</div>
	);
}
