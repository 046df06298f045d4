import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Keys() {
	return (
		<Page>
			<PageHeader title="API keys" />
			<Card>
				<EmptyState title="No API keys yet." />
			</Card>
		</Page>
	);
}
