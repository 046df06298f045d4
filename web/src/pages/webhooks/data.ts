import { useQuery } from "@tanstack/react-query";
import { api, got, type Schema } from "@/api/client";

export type Webhook = Schema["Webhook"];
export type Delivery = Schema["Delivery"];

export function useWebhook(id: string) {
	return useQuery({
		queryKey: ["webhooks", id],
		queryFn: ({ signal }) => got(api.GET("/v1/webhooks/{id}", { params: { path: { id } }, signal })),
	});
}
