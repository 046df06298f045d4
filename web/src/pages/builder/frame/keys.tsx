import { useState } from "react";
import { useMay } from "@/api/session";
import { useEditor } from "@/pages/builder/state";
import { KeyDialog } from "@/shared/state/key-dialog";
import { Keys } from "@/shared/state/keys";
import { Button, IconButton } from "@/ui/button";
import { Sheet } from "@/ui/dialog";
import { BracesIcon, PlusIcon } from "@/ui/icons";

/** KeysButton opens the keys of the workflow: values that its runs keep. */
export function KeysButton() {
	const { id } = useEditor();
	const write = useMay("write");
	const [open, setOpen] = useState(false);
	const [creating, setCreating] = useState(false);
	return (
		<>
			<IconButton icon={BracesIcon} label="Keys" onClick={() => setOpen(true)} />
			<Sheet
				open={open}
				onOpenChange={setOpen}
				title="Keys of this workflow"
				description="Values that it keeps between runs. They are deleted with it."
				width={760}
				focus="sheet"
				actions={
					write && (
						<Button kind="primary" icon={PlusIcon} onClick={() => setCreating(true)}>
							New key
						</Button>
					)
				}
			>
				<Keys workflow={id} onNew={() => setCreating(true)} />
				{creating && <KeyDialog workflow={id} onClose={() => setCreating(false)} />}
			</Sheet>
		</>
	);
}
