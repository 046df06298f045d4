import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function First() {
	return (
		<Page>
			<PageHeader title="Your first workflow" />
			<Card>
				<EmptyState title="Your first workflow" />
			</Card>
		</Page>
	);
}
