import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { Button, IconButton } from "@/ui/button";
import { BoltIcon, ChevronDownIcon, EditIcon, KeyIcon, MoreIcon, RetryIcon, StopIcon, TrashIcon } from "@/ui/icons";
import { Menu, MenuItem, MenuLabel, MenuLine } from "@/ui/menu";
import { toast } from "@/ui/toast";
import type { Webhook } from "./data";
import type { EventName } from "./events";

/** The dialog that an action opens. */
export type OpenDialog = "edit" | "rotate" | "missed" | "delete" | undefined;

export function WebhookActions({ webhook, onAsk }: { webhook: Webhook; onAsk: (asked: OpenDialog) => void }) {
	const { id } = webhook;
	const write = useMay("write");
	const client = useQueryClient();
	const refresh = () => client.invalidateQueries({ queryKey: ["webhooks"] });
	const test = useMutation({
		mutationFn: (events?: EventName[]) =>
			got(api.POST("/v1/webhooks/{id}/test", { params: { path: { id } }, body: events ? { events } : {} })),
		onSuccess: ({ deliveries }) => {
			toast.done(deliveries.length === 1 ? "Sending a sample event" : `Sending ${deliveries.length} sample events`);
			return refresh();
		},
	});
	const enable = useMutation({
		mutationFn: (enabled: boolean) =>
			got(api.PATCH("/v1/webhooks/{id}", { params: { path: { id } }, body: { enabled } })),
		onSuccess: refresh,
	});
	if (!write) return null;
	return (
		<>
			<Menu
				trigger={
					<Button busy={test.isPending}>
						Send test
						<ChevronDownIcon />
					</Button>
				}
			>
				<MenuLabel>Sample event</MenuLabel>
				{webhook.events.map((event) => (
					<MenuItem key={event} onSelect={() => test.mutate([event as EventName])}>
						<code className="font-mono text-12">{event}</code>
					</MenuItem>
				))}
				{webhook.events.length > 1 && (
					<>
						<MenuLine />
						<MenuItem onSelect={() => test.mutate(undefined)}>All events</MenuItem>
					</>
				)}
			</Menu>
			<Button icon={EditIcon} onClick={() => onAsk("edit")}>
				Edit
			</Button>
			<Menu trigger={<IconButton icon={MoreIcon} label="More actions" kind="secondary" />}>
				<MenuItem icon={KeyIcon} onSelect={() => onAsk("rotate")}>
					Rotate secret…
				</MenuItem>
				<MenuItem icon={RetryIcon} onSelect={() => onAsk("missed")} disabled={!webhook.enabled}>
					Redeliver missed events…
				</MenuItem>
				{webhook.enabled ? (
					<MenuItem icon={StopIcon} onSelect={() => enable.mutate(false)}>
						Disable
					</MenuItem>
				) : (
					<MenuItem icon={BoltIcon} onSelect={() => enable.mutate(true)}>
						Enable
					</MenuItem>
				)}
				<MenuLine />
				<MenuItem icon={TrashIcon} danger onSelect={() => onAsk("delete")}>
					Delete…
				</MenuItem>
			</Menu>
		</>
	);
}
