{{ config(materialized="table") }}
select customer, count(*) as orders, sum(amount) as spent from {{ ref("orders") }} group by customer
