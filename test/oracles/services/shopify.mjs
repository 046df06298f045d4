import { createAdminApiClient } from "@shopify/admin-api-client";
import { queries } from "../graphql.mjs";

// The client sends the queries that it is given, to the right place and with the token. So
// these are those of the manifest; their variables are written here once more.
const ours = queries("shopify");

const gid = (type, id) => (id === undefined ? undefined : id.startsWith("gid:") ? id : `gid://shopify/${type}/${id}`);
const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
const quoted = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

// once returns an operation that sends one query.
const once = (name, variables) => (shopify, i) => shopify.request(ours[name][0], { variables: given(variables(i)) });

// pages returns an operation that reads a list.
const pages =
  (name, size, at, variables = (_) => ({})) =>
  async (shopify, i) => {
    let after;
    let count = 0;
    do {
      const first = i.all ? size : Math.min(i.limit ?? 100, size);
      const { data } = await shopify.request(ours[name][0], { variables: given({ first, after, ...variables(i) }) });
      if (!at(data)) return;
      const { nodes, pageInfo } = at(data);
      count += nodes.length;
      after = pageInfo.hasNextPage ? pageInfo.endCursor : undefined;
    } while (after && (i.all || count < (i.limit ?? 100)));
  };

// steps returns an operation that sends several queries; each gets the answer of the one
// before it, and sends none if it returns nothing.
const steps =
  (name, ...list) =>
  async (shopify, i) => {
    let data;
    for (const [number, variables] of list.entries()) {
      const values = variables(i, data);
      if (!values) return;
      ({ data } = await shopify.request(ours[name][number], { variables: given(values) }));
    }
  };

const searched = ({ search }) => ({ query: search });
const product = (i) => given({ title: i.title, descriptionHtml: i.description, status: i.status, vendor: i.vendor, productType: i.type, tags: i.tags });
const variant = (id, i) => given({ id, price: i.price, compareAtPrice: i.compare_at_price, barcode: i.barcode, inventoryItem: i.sku && { sku: i.sku } });
const customer = (i) => given({ email: i.email, firstName: i.first_name, lastName: i.last_name, phone: i.phone, note: i.note, tags: i.tags });
const owner = (i) => gid(i.owner, i.id);
const key = "3467dd8f-98ee-818f-8a2b-fd50eea457a0"; // that of the step in tests

const line = (currency) => (one) => {
  const price = one.price && { amount: one.price, currencyCode: currency.toUpperCase() };
  const of = one.variant ? { variantId: gid("ProductVariant", one.variant), priceOverride: price } : { title: one.title, originalUnitPriceWithCurrency: price };
  return given({ ...of, quantity: one.quantity ?? 1 });
};

// since are the variables of a page of what was created or changed since the cursor.
const since = (filter, sortKey) => ({ cursor, condition }) => ({
  after: cursor?.after,
  query: `${filter}:>='${new Date(cursor?.since ?? "2026-11-18T08:45:00Z").toISOString()}'${condition ? ` AND (${condition})` : ""}`,
  sortKey,
});

/** @type {import("../service.d.ts").Service<any>} */
export default {
  client: "@shopify/admin-api-client",
  auth: "api_key",
  secrets: { token: "shpat_made-up" },
  headers: ["x-shopify-access-token"],
  connect: ({ at, secrets }) =>
    createAdminApiClient({
      storeDomain: "my-store.myshopify.com",
      apiVersion: "2026-07",
      accessToken: secrets.token,
      retries: 0,
      customFetchApi: (url, init) => fetch(at(String(url)), /** @type {any} */ (init)),
    }),
  operations: {
    "hooks/topic": (shopify, i) => {
      const [create, remove] = ours["hooks/topic"];
      if (i.does !== "register") return shopify.request(remove, { variables: { id: i.subscription.id } });
      return shopify.request(create, { variables: { topic: i.topic, webhookSubscription: given({ uri: i.hook.url, format: "JSON", filter: i.filter }) } });
    },
    create_product: steps(
      "create_product",
      (i) => ({ product: { status: "DRAFT", ...product(i) }, media: i.image && [{ originalSource: i.image, mediaContentType: "IMAGE" }] }),
      (i, data) => {
        const created = data?.productCreate?.product;
        return created && (i.price || i.sku) && { productId: created.id, variants: [variant(created.variants.nodes[0].id, i)] };
      },
    ),
    update_product: once("update_product", (i) => ({ product: { id: gid("Product", i.product), ...product(i) } })),
    get_product: once("get_product", (i) => ({ id: gid("Product", i.product) })),
    list_products: pages("list_products", 50, (data) => data.products, (i) => ({ ...searched(i), sortKey: i.order ?? "ID" })),
    update_variant: steps(
      "update_variant",
      (i) => ({ id: gid("ProductVariant", i.variant) }),
      (i, { productVariant }) => productVariant && { productId: productVariant.product.id, variants: [variant(gid("ProductVariant", i.variant), i)] },
    ),
    find_variant: once("find_variant", (i) => ({ query: `sku:${quoted(i.sku)}` })),
    list_variants: pages("list_variants", 50, (data) => data.productVariants, searched),
    get_order: once("get_order", (i) => ({ id: gid("Order", i.order) })),
    find_order: once("find_order", (i) => ({ query: `name:${quoted(i.name)}` })),
    list_orders: pages("list_orders", 50, (data) => data.orders, (i) => ({ ...searched(i), sortKey: i.order ?? "PROCESSED_AT" })),
    "triggers/new_order": once("triggers/new_order", since("created_at", "CREATED_AT")),
    "triggers/order_changed": once("triggers/order_changed", since("updated_at", "UPDATED_AT")),
    "triggers/new_customer": once("triggers/new_customer", since("customer_date", undefined)),
    update_order: once("update_order", (i) => ({ input: given({ id: gid("Order", i.order), note: i.note, email: i.email, phone: i.phone, tags: i.tags }) })),
    cancel_order: once("cancel_order", (i) => ({
      orderId: gid("Order", i.order),
      reason: i.reason ?? "OTHER",
      refundMethod: { originalPaymentMethodsRefund: i.refund ?? false },
      restock: i.restock ?? true,
      notifyCustomer: i.notify ?? false,
      staffNote: i.note,
    })),
    create_customer: once("create_customer", (i) => ({ input: customer(i) })),
    update_customer: once("update_customer", (i) => ({ input: { id: gid("Customer", i.customer), ...customer(i) } })),
    find_customer: once("find_customer", (i) => ({ identifier: { emailAddress: i.email } })),
    list_customers: pages("list_customers", 50, (data) => data.customers, searched),
    get_inventory: once("get_inventory", (i) => ({ id: gid("ProductVariant", i.variant) })),
    set_inventory: steps(
      "set_inventory",
      (i) => ({ id: gid("ProductVariant", i.variant) }),
      (i, { productVariant }) => {
        const at = { inventoryItemId: productVariant.inventoryItem.id, locationId: gid("Location", i.location) };
        const quantities = [{ ...at, quantity: i.quantity, changeFromQuantity: null }];
        return { input: { name: i.name ?? "available", reason: i.reason ?? "correction", quantities }, key };
      },
    ),
    adjust_inventory: steps(
      "adjust_inventory",
      (i) => ({ id: gid("ProductVariant", i.variant) }),
      (i, { productVariant }) => {
        const at = { inventoryItemId: productVariant.inventoryItem.id, locationId: gid("Location", i.location) };
        return { input: { name: "available", reason: i.reason ?? "correction", changes: [{ ...at, delta: i.by, changeFromQuantity: null }] }, key };
      },
    ),
    list_fulfillment_orders: pages("list_fulfillment_orders", 10, (data) => data.order.fulfillmentOrders, (i) => ({ id: gid("Order", i.order) })),
    fulfill_order: steps(
      "fulfill_order",
      (i) => ({ id: gid("Order", i.order) }),
      (i, { order }) => {
        const here = ({ assignedLocation }) => !i.location || assignedLocation.location.id === gid("Location", i.location);
        const left = order.fulfillmentOrders.nodes.filter((one) => one.status === "OPEN" && here(one));
        if (left.length === 0) return undefined;
        const trackingInfo = i.tracking_number && { number: i.tracking_number, company: i.tracking_company, url: i.tracking_url };
        const lineItemsByFulfillmentOrder = left.map(({ id }) => ({ fulfillmentOrderId: id }));
        return { fulfillment: given({ lineItemsByFulfillmentOrder, notifyCustomer: i.notify ?? true, trackingInfo }) };
      },
    ),
    create_draft_order: once("create_draft_order", (i) => ({
      input: {
        lineItems: i.lines.map(line(i.currency)),
        purchasingEntity: { customerId: gid("Customer", i.customer) },
        email: i.email,
        note: i.note,
        tags: i.tags,
        appliedDiscount: { value: i.discount_percent, valueType: "PERCENTAGE" },
      },
    })),
    complete_draft_order: once("complete_draft_order", (i) => ({ id: gid("DraftOrder", i.draft) })),
    send_draft_invoice: once("send_draft_invoice", (i) => ({
      id: gid("DraftOrder", i.draft),
      email: i.to && { to: i.to, subject: i.subject, customMessage: i.message },
    })),
    list_draft_orders: pages("list_draft_orders", 50, (data) => data.draftOrders, searched),
    add_tags: once("add_tags", (i) => ({ id: owner(i), tags: i.tags })),
    remove_tags: once("remove_tags", (i) => ({ id: owner(i), tags: i.tags })),
    set_metafield: once("set_metafield", (i) => {
      const value = typeof i.value === "string" ? i.value : JSON.stringify(i.value);
      return { metafields: [given({ ownerId: owner(i), namespace: i.namespace, key: i.key, value, type: i.type })] };
    }),
    list_metafields: pages("list_metafields", 100, (data) => data.node?.metafields, (i) => ({ id: owner(i) })),
    list_locations: pages("list_locations", 50, (data) => data.locations),
  },
};
