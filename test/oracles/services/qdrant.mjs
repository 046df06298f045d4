import { QdrantClient } from "@qdrant/js-client-rest";

// conditions returns those of simple filters.
const conditions = (filters) =>
  filters.map(({ field: key, operator, value }) => {
    if (["gt", "gte", "lt", "lte"].includes(operator)) return { key, range: { [operator]: value } };
    return { key, match: { [{ in: "any", text: "text" }[operator] ?? "value"]: value } };
  });

/** @type {(i: any) => import("@qdrant/js-client-rest").Schemas["Filter"] | undefined} */
function filter({ filters = [], filter = {} }) {
  const more = Object.keys(filter).length > 0;
  if (filters.length === 0 && !more) return undefined;
  return {
    must: [...conditions(filters.filter(({ operator }) => operator !== "neq")), ...(more ? [filter] : [])],
    must_not: conditions(filters.filter(({ operator }) => operator === "neq")),
  };
}

/** @type {(i: any) => { points?: any[], filter?: any }} */
const selected = (i) => (i.ids ? { points: i.ids } : { filter: filter(i) });
const host = "acme.eu-central.aws.cloud.qdrant.io:6333";

/** @type {import("../service.d.ts").Service<import("@qdrant/js-client-rest").QdrantClient>} */
export default {
  client: "@qdrant/js-client-rest",
  auth: "api_key",
  secrets: { key: "made-up" },
  headers: ["api-key"],
  connect: ({ at, secrets }) => {
    const { hostname, port, pathname } = new URL(at(`https://${host}`));
    console.warn = () => {}; // the recorder has no TLS
    return new QdrantClient({ host: hostname, port: Number(port), https: false, prefix: pathname, apiKey: secrets.key, checkCompatibility: false });
  },
  operations: {
    upsert_point: (qdrant, i) => qdrant.upsert(i.collection, { wait: true, points: [{ id: i.id, vector: i.vector, payload: i.payload }] }),
    upsert_points: async (qdrant, i) => {
      for (let from = 0; from < i.points.length; from += 100) await qdrant.upsert(i.collection, { wait: true, points: i.points.slice(from, from + 100) });
    },
    search_points: (qdrant, i) =>
      qdrant.query(i.collection, {
        query: i.vector ?? i.point,
        limit: i.count ?? 10,
        filter: filter(i),
        score_threshold: i.score_threshold,
        using: i.using,
        with_payload: true,
        with_vector: i.with_vector,
        params: i.params,
      }),
    recommend_points: (qdrant, i) =>
      qdrant.query(i.collection, {
        query: { recommend: { positive: i.positive, negative: i.negative } },
        limit: i.count ?? 10,
        filter: filter(i),
        using: i.using,
        with_payload: true,
      }),
    get_points: (qdrant, i) => qdrant.retrieve(i.collection, { ids: i.ids, with_payload: true, with_vector: i.with_vector }),
    list_points: async (qdrant, i) => {
      const { limit = 100, all } = i;
      let count = 0;
      /** @type {any} */
      let offset;
      do {
        const page = await qdrant.scroll(i.collection, { filter: filter(i), limit: all ? 250 : Math.min(limit, 250), offset, with_payload: true, with_vector: i.with_vector ?? false });
        count += page.points.length;
        offset = page.next_page_offset ?? undefined;
      } while (offset !== undefined && (all || count < limit));
    },
    count_points: (qdrant, i) => qdrant.count(i.collection, { filter: filter(i), exact: !i.approximate }),
    set_payload: (qdrant, i) => qdrant[i.replace ? "overwritePayload" : "setPayload"](i.collection, { wait: true, payload: i.payload, ...selected(i) }),
    delete_payload: (qdrant, i) => qdrant.deletePayload(i.collection, /** @type {any} */ ({ wait: true, keys: i.keys, ...selected(i) })),
    delete_points: (qdrant, i) => qdrant.delete(i.collection, /** @type {any} */ ({ wait: true, ...selected(i) })),
    list_collections: (qdrant) => qdrant.getCollections(),
    get_collection: (qdrant, i) => qdrant.getCollection(i.collection),
    create_collection: (qdrant, i) =>
      qdrant.createCollection(i.name, {
        vectors: i.vectors ?? { size: i.size, distance: i.distance ?? "Cosine" },
        sparse_vectors: i.sparse_vectors,
        on_disk_payload: i.on_disk_payload,
      }),
    delete_collection: (qdrant, i) => qdrant.deleteCollection(i.collection),
    create_index: (qdrant, i) => qdrant.createPayloadIndex(i.collection, { wait: true, field_name: i.field, field_schema: i.type }),
    list_fields: (qdrant, i) => qdrant.getCollection(i.collection),
    list_vectors: (qdrant, i) => qdrant.getCollection(i.collection),
  },
};
