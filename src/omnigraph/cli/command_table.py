"""The commands, with their parameters and help, written by `scripts/docs_gen.py`."""

# ruff: noqa: E501
COMMAND_TABLE = """\
alias | command | name= values=+ --params= --params-file=file --format=table,kv,csv,jsonl,json --json | Run the stored query configured as alias NAME.
analyze | group |  | Run a graph algorithm; print a value for every node, or store it as a property.
analyze components | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json | Compute connected components; the value is the smallest node ID of the component.
analyze degrees | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json --direction=out,in,both | Compute the degree of each node.
analyze kcore | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json | Compute the core number of each node.
analyze labels | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json --iterations= | Find communities by label propagation.
analyze pagerank | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json --damping= --iterations= --tolerance= | Compute PageRank; the ranks of all nodes sum to 1.
analyze shortest-paths | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json --source= --weight= --direction=out,in,both | Compute the length of the shortest path from one node to each node.
analyze triangles | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --edges=+ --into= --branch= --snapshot= --from= --message,-m= --engine=local,spark --timeout= --memory= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --json | Count the triangles of each node.
blame | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ type_name= id_= --at= --json | Show the commit that last set each property of an entity.
blob | group |  | Read and write blobs: binary properties of entities.
blob clear | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= entity=node,edge type_name= id_= property_name= --branch= --json | Set an optional blob of an entity to null, as one commit.
blob get | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ entity=node,edge type_name= id_= property_name= --branch= --snapshot= --offset= --length= --out=file | Write the bytes of a blob to a file or to standard output.
blob put | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= entity=node,edge type_name= id_= property_name= file=file --branch= --json | Set a blob of an entity to the bytes of FILE, as one commit.
blob stat | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ entity=node,edge type_name= id_= property_name= --branch= --snapshot= --json | Show the location and size of a blob.
branch | group |  | Create, list, merge and delete branches.
branch create | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --from= name= --json | Create a branch.
branch delete | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= name= --force --json | Delete a branch.
branch list | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | List all branches.
branch merge | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= source= --into= --dry-run --strict --resolve= --delete-branch --message,-m= --json | Merge a branch into another.
changes | group |  | Read the change feed of a graph, commit by commit.
changes baseline | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --kind=+ --type=+ --op=+ --out=file --json | Write all entities to a file and print the cursor of exactly that state.
changes commit | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ commit_id= --limit= --page-token= --kind=+ --type=+ --op=+ --json | Print the changes of a commit compared with its first parent.
changes poll | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --cursor= --start= --limit= --kind=+ --type=+ --op=+ --json | Print the changes since a cursor, and the next cursor.
check | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --checks=file --at= --junit=file --json | Run the checks on a state: queries with `@check` must return no rows.
cherry-pick | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= commit_id= --branch= --dry-run --resolve= --message,-m= --json | Apply the changes of a commit to a branch, as a new commit.
cleanup | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --keep= --older-than= --confirm --json | Remove files that no retained snapshot needs.
cluster | group |  | Manage graphs, policies and stored queries declared in cluster.yaml.
cluster apply | command | --as= --config=file --json | Apply cluster.yaml to storage.
cluster approve | command | resource= --as= --config=file --json | Approve the planned deletion of a graph.
cluster force-unlock | command | lock_id= --config=file --json | Remove the lock of a command that no longer runs.
cluster import | command | --config=file --json | Create the first ledger, including graphs that already exist.
cluster plan | command | --config=file --json | Show the changes that `apply` would make.
cluster refresh | command | --config=file --json | Record the current state of the graphs in the ledger.
cluster status | command | --config=file --json | Show the applied state, without taking the lock.
cluster validate | command | --config=file --json | Check cluster.yaml and every file it references.
commit | group |  | Show the commit history of a graph.
commit changes | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ commit_id= --limit= --page-token= --kind=+ --type=+ --op=+ --json | Print the changes of a commit compared with its first parent.
commit list | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --actor= --limit= --json | List commits, newest first.
commit log | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --actor= --limit= --draw --json | Show the history of a branch with refs, actors and counts, newest first.
commit show | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ commit_id= --json | Show one commit.
completion | command | shell=bash,zsh,fish | Print the completion script of a shell.
diff | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ old_state= new_state= --kind=+ --type=+ --op=+ --stat --json --jsonl | Show the entities that differ between two states of a graph.
embed | command | graph_and_type=+ --store,--uri= --as= --property= --all --stale --branch= --message= --seed=file --input=file --output=file --spec=file --clean --reembed-all --type=+ --select=+ --json | Compute embedding vectors for a type of a graph, or for records in a file.
explain | command | arguments=+ --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= --query=file -e,--query-string= --params= --params-file=file --branch= --analyze --json | Show the plan of a query: its operators, with estimates.
export | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --type=+ --parquet=file --parts= --format=parquet,csv,ndjson --engine=local,spark --archive=file --history --json | Export all entities as NDJSON that `load` reads.
fmt | command | paths=file+ --check --json | Format .pg and .gq files in place, including those in folders.
graphs | group |  | List the graphs of a server.
graphs list | command | --server= --graph= --cluster= --profile= --yes --quiet --json | List the graphs of a server.
history | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ type_name= id_= --at= --json --limit= | List the commits that changed an entity, newest first.
import | command | --as= archive=file uri= --store,--uri= --json | Create a graph from a file written by `export --archive`.
index | group |  | Show indexes and build missing ones.
index build | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --branch= --json | Build missing indexes, as one commit that changes no entities.
index status | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --json | List the indexes declared by the schema and their coverage.
ingest | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --data=file --branch= --from= --mode=append,merge,overwrite --json | Load records of the older, permissive format as one commit.
init | command | uri=+ --store,--uri= --schema=file --from=+ --encoding= --yes --force --json | Create a graph in a folder or at an s3:// address.
lint | command | --schema=file --store,--uri= --query=file+ --server= --graph= --cluster= --profile= --yes --quiet rest=+ --json | Check query files against a schema file or a graph; exit 1 on errors.
load | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --data=file+ --node=+ --edge=+ --mode=append,merge,overwrite --partial --vectors-from= --branch= --from= --message= --encoding= --engine=local,spark --durability=full,relaxed --json | Load data atomically as one commit.
login | command | name= --token= --json | Store the token for server NAME, readable only by you.
logout | command | name= --json | Delete the token for server NAME.
maintain | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --watch --interval= --cpu-share= --json | Compact, index, clean up by the retention and store topologies, as far as due.
mcp | command | uri=+ --graph=+ --store,--uri= --queries=+ --policy=+ --server-policy= --as= --http --bind= --unauthenticated | Start an MCP server on standard input and output, or over HTTP.
merge | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= source= --into= --dry-run --strict --resolve= --delete-branch --message,-m= --json | Merge a branch into another.
mutate | command | arguments=+ --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= --as= --query=file -e,--query-string= --params= --params-file=file --branch= --if-commit= --message= --json | Run a mutation as one commit.
optimize | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --branch= --engine=local,spark --json | Compact datasets and update indexes, as one commit that changes no entities.
pipeline | group |  | Load data with Spark, as described by a pipeline file.
pipeline abort | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= run_id= --json | Abort a run and remove its staged files.
pipeline init | command | --from=+ --encoding= --out=dir --force --json | Propose a schema and a pipeline file for data.
pipeline list | command | --server= --graph= --cluster= --profile= --yes --quiet --json | List the pipelines of a cluster.
pipeline ls | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ path=file --set=+ --target= --json --select=+ --exclude=+ --schema=file | List the sources and types of a pipeline, and what each is made from.
pipeline plan | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ path=file --set=+ --target= --json --select=+ --exclude=+ --count --full-refresh | Show what a run would read, create and change.
pipeline report | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ run_id= --html=file --json | Show the report of a run, by default of the newest one.
pipeline resume | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= run_id= --file=file --set=+ --html=file --log-format=text,json --json | Resume an interrupted run.
pipeline run | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ path=file --set=+ --target= --json --select=+ --exclude=+ --as= --log-format=text,json --force --full-refresh --html=file | Run a pipeline and publish the loaded data as one commit.
pipeline status | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ run_id= --json | List the runs of a graph, or show one.
pipeline validate | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ path=file --set=+ --target= --json --schema=file | Check a pipeline file without starting Spark.
pipeline warmup | command | --json | Cache the Java classes of Spark for this user, so that sessions start faster.
policy | group |  | Validate, test and explain policies.
policy explain | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --kind=graph,server --actor= --action=read,export,change,schema_apply,branch_create,branch_delete,branch_merge,admin,invoke_query,graph_list,bypass_protection --branch= --target-branch= --json | Show the decision of a policy, the matching rule and the types.
policy test | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --kind=graph,server --tests=file --json | Run test cases of a policy; exit 1 and list those that fail.
policy validate | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --kind=graph,server --json | Check a policy file and list all its errors.
profile | group |  | Show profiles: named addresses of servers, clusters and graphs.
profile list | command | --json | List all profiles.
profile show | command | name= --json | Show a profile: NAME, the active one, or the defaults.
proposal | group |  | Propose to merge a branch, review proposals and merge them.
proposal check | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= --checks=file --json | Run the checks on the state that merging a proposal now would make.
proposal close | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= --comment= --json | Close a proposal without merging it.
proposal comment | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= --on=+ --reply-to= --resolve= --unresolve= --body,-b= --file=file --json | Comment on a proposal, reply, or resolve a thread.
proposal create | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= source= --into= --title,-t= --reviewer=+ --body,-b= --file=file --json | Propose to merge a branch; the text is the description.
proposal diff | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ number= --kind=+ --type=+ --op=+ --stat --jsonl --json | Show the entities that a proposal changes.
proposal edit | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= --title,-t= --reviewer=+ --body,-b= --file=file --json | Change the title, the description or the reviewers.
proposal events | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --after= --proposal= --limit= --json | List what happened to proposals, in order, and the cursor to continue from.
proposal list | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --state=open,merged,closed,all --author= --reviewer= --target= --limit= --json | List proposals, the newest first.
proposal merge | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= --resolve= --delete-branch --message,-m= --dry-run --checks=file --json | Merge a proposal if its checks pass and the rules of its target are satisfied.
proposal reopen | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= --comment= --json | Open a closed proposal again.
proposal review | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= number= verdict=approve,request_changes,comment --commit= --body,-b= --file=file --json | Approve a proposal, request changes, or only comment.
proposal show | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ number= --json | Show a proposal with its reviews, comments and checks.
protection | group |  | Protect branches: only proposals that satisfy the rules are merged into them.
protection clear | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --json | Remove the stored rules.
protection set | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --branch=+ --tag=+ --approvals= --from= --approver=+ --check=+ --stale-approvals --self-approval --rules=file --add --json | Store rules, in place of those that are stored.
protection show | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | Show the stored rules and those of the policy.
queries | group |  | List and check the stored queries of a cluster.
queries list | command | --server= --graph= --cluster= --profile= --yes --quiet --json | List the applied stored queries.
queries validate | command | --server= --graph= --cluster= --profile= --yes --quiet --json | Check the applied stored queries against the current schemas of their graphs.
query | command | arguments=+ --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= --query=file -e,--query-string= --params= --params-file=file --branch= --snapshot= --timeout= --format=table,json,jsonl,csv,kv,arrow,parquet --out=file --engine=local,spark --json | Run a query and print its rows.
quickstart | command | folder=file --json | Write a small project into DIR, ./omnigraph-demo by default, and print what to run next.
recover | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --stale-after= --audit --json | Finish or undo operations interrupted by a crash.
repair | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --confirm --force --to-last-good --json | Rebuild derived state, or return a damaged graph to its last good versions.
retention | group |  | Declare which commits automatic cleanup keeps.
retention set | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --keep= --older-than= --json | Set the retention; `omnigraph maintain` and `serve` then remove what it does not keep.
retention show | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | Show the retention of a graph.
retention unset | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | Remove the retention; nothing is removed automatically any more.
revert | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= commit_id= --branch= --dry-run --resolve= --message,-m= --json | Undo the changes of a commit, as a new commit.
running | group |  | List and cancel the running queries of a served graph.
running cancel | command | query_id= --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | Cancel the running query with the ID QUERY_ID.
running list | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | List the running queries, the oldest first; your own, or all for an admin.
schema | group |  | Show schemas; plan and apply schema changes.
schema apply | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= path=file --schema=file --branch= --allow-data-loss --dry-run --message= --json | Migrate a graph to a new schema, as one commit.
schema diff | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ old= new= --json | Show the migration steps between two schema files or two states of a graph.
schema get | command | uri= --store,--uri= --server= --graph= --cluster= --profile= --yes --quiet --as= --policy=file --at= --json | Show the resolved types of a schema file, or the schema text of a graph.
schema plan | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --schema=file --from=file --to=file --allow-data-loss --json | Show the migration steps to a new schema, or why it is refused.
schema show | command | uri= --store,--uri= --server= --graph= --cluster= --profile= --yes --quiet --as= --policy=file --at= --json | Show the resolved types of a schema file, or the schema text of a graph.
serve | command | addresses=+ --graph=+ --store,--uri= --cluster= --queries=+ --policy=+ --server-policy= --external-blobs=+ --durability=full,relaxed --bind= --workers= --maintenance/--no-maintenance --slow-query= --unauthenticated --require-all-graphs --metrics-address= --audit-log= --tls-cert=file --tls-key=file --trusted-proxy=+ --query-timeout= --query-memory= --query-memory-total= --deadline= --body-timeout= --idle-timeout= --connection-age= --threads= --connections= --maintenance-interval= --maintenance-cpu-share= | Start the HTTP server.
shell | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --branch= --read-only --format=table,json,jsonl,csv,kv --json | Type queries, mutations and commands; `.help` lists the commands.
snapshot | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --json | Show the dataset versions of a snapshot.
status | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --branch= --json | Show the size of a graph, its fragments and indexes, and its maintenance.
studio | command | uri=+ --store,--uri= --as= --policy= --queries= --port= --open/--no-open | Show a graph in the browser, until Ctrl-C.
tag | group |  | Create, list and delete tags: fixed names of commits.
tag create | command | --policy=file --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --as= --at= name= --json | Create a tag.
tag delete | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ name= --json | Delete a tag; its commit is kept.
tag list | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --json | List all tags.
verify | command | --policy=file --as= --server= --graph= --cluster= --profile= --yes --quiet --store,--uri= uri=+ --engine=local,spark --deep --json | Check the integrity of a graph; exit 1 if it is damaged.
version | command | --json | Print the versions of the program and of the storage format it writes.
"""
