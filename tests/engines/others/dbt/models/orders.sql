-- A run adds the orders of the seed, and replaces those of the same id.
{{ config(materialized="incremental", incremental_strategy="merge", unique_key="id", partition_by=["day"]) }}
select id, customer, amount * {{ var("factor", 1) }} as amount, day from {{ ref("raw_orders") }}
{% if is_incremental() %} where id >= 2 {% endif %}
