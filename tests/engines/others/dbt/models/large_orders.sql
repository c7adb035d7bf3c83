{{ config(materialized="view") }}
select id, customer from {{ ref("orders") }} where amount >= 20
