import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Builder() {
	return (
		<Page>
			<PageHeader title="Builder" />
			<Card>
				<EmptyState title="What starts this workflow?" />
			</Card>
		</Page>
	);
}
