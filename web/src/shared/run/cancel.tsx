import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { StopIcon } from "@/ui/icons";

/** CancelRun cancels a run that has not ended. It is hidden from users who may not. */
export function CancelRun({ run, small }: { run: string; small?: boolean }) {
	const may = useMay("execute");
	const [confirming, setConfirming] = useState(false);
	if (!may) return null;
	return (
		<>
			<Button small={small} icon={StopIcon} onClick={() => setConfirming(true)}>
				Cancel run
			</Button>
			<ConfirmDialog
				open={confirming}
				onOpenChange={setConfirming}
				title="Cancel this run?"
				verb="Cancel run"
				danger
				onConfirm={() => got(api.POST("/v1/runs/{id}/cancel", { params: { path: { id: run } } }))}
			>
				It stops immediately. Steps that have finished are not undone.
			</ConfirmDialog>
		</>
	);
}
