"""The words by which a text is judged."""

from __future__ import annotations

from typing import Final


def gather(words: str) -> frozenset[str]:
    """The words of a text that has nothing else."""
    return frozenset(words.split())


EMPTY: Final = gather(
    "a an the of for to value parameter param argument input option field string number integer boolean object"
    " array optional required this"
)
"""Words that add nothing to a name."""
VAGUE: Final = gather("something stuff things somehow whatever")
"""Words that tell a model nothing."""
ADVERBS: Final = gather("please then also first")
"""What may stand before the verb."""
OBJECTS: Final = gather("a an the all any each every one two this these that it its your whether what which how")
"""Words that begin what a verb is about."""
NO_VERBS: Final = gather(
    "a an the i you we this these that it its for with of in on at from to by and or all any each every is are was"
    " be can will should may must used useful tool utility helper function method when if after before"
)
"""What begins a sentence about the tool instead of an order."""
AFTER_NOUNS: Final = gather("of for about is are which who")
"""What stands behind a noun only."""
NOUN_ENDINGS: Final = ("tion", "sion", "ment", "ity", "ness", "ance", "ence", "ing", "ship", "ism", "ware", "er", "or")
"""How nouns end. The verbs that end so are listed."""
THINGS: Final = gather(
    "api capability endpoint extraction feature functionality handler helper interface manager module operation"
    " service support tool utility wrapper"
)
"""What a label ends with."""
NOUNS_TOO: Final = gather(
    "access anchor archive audit author backup balance benchmark bookmark cache check click code command"
    " comment control copy count crawl debug display document download drag draw edit email experiment export"
    " fetch file filter format group highlight import index input issue label list load lock log map measure"
    " merge message monitor name order page parse patch ping plan plot post preview process profile program"
    " query rank record release render report request research retry review run sample scan schedule score"
    " screenshot search sequence sign sort stream submit supplement sync tag test text time trace track transfer"
    " transform translate type update upload view visit watch work write"
)
"""Verbs that are the names of things as well."""
VERBS: Final = NOUNS_TOO | gather(
    "abort accept acknowledge acquire activate adapt add adjust aggregate align allocate allow alter amend"
    " analyse analyze annotate answer append apply approve arrange ask assemble assert assess assign associate"
    " attach authenticate authorize automate await block book boost boot bring broadcast browse build bump"
    " calculate call cancel capture cast categorize center change chart chat choose claim classify clean clear"
    " clone close collapse collect combine commit compact compare compile complete compose compress compute"
    " concatenate configure confirm connect consider consolidate construct consult continue convert cordon correct"
    " correlate cover create crop cut deactivate decide decline decode decompose decrypt deduplicate define"
    " delegate delete deliver demonstrate deny deploy deprecate derive describe destroy detach detect determine"
    " diagnose diff disable discard disconnect discover dismiss dispatch distribute divide do drain drop dump"
    " duplicate echo elicit embed emit emulate enable encode encrypt end enforce enqueue enrich ensure enter"
    " enumerate erase escalate establish estimate evaluate examine execute exit expand explain explore expose"
    " extend extract fail favorite fill finalize find finish fix flag flip flush focus follow forget fork forward"
    " free freeze gather generate get give go grab grant grep guess handle hash help hide hold hover identify"
    " ignore implement include increase increment infer inform initialize initiate inject insert inspect install"
    " instantiate instruct interact interpret interrupt introspect invalidate inverse invert invite invoke isolate"
    " iterate join jump keep kick kill launch lay learn leave lend let lift limit link lint listen locate look"
    " lookup lower maintain make manage mark mask match mine minimize mirror mock modify mount move multiply mute"
    " navigate negotiate normalize notify observe obtain offer open operate optimize organize overwrite pack"
    " paginate paint paste pause pay peek perform persist pick pin place play point poll pop populate prepare"
    " press prevent print prioritize probe produce promote prompt propose protect provide provision prune publish"
    " pull purchase purge push put quarantine queue quit raise randomize reach react read reassign rebase reboot"
    " rebuild recall receive recognize recommend reconcile reconnect recover redact redeem redirect redo reduce"
    " refactor refer refine refresh refund register reject relate reload remember remind remove rename reopen"
    " reorder repair repeat replace replay reply reproduce rerun reschedule reserve reset resize resolve respond"
    " restart restore restrict resume retrieve return reuse reveal reverse revert revoke rewrite roll rollback"
    " rotate round route sanitize save say scaffold scale scrape scroll see seek segment select send serialize"
    " serve set setup share shift ship show shrink shuffle shut shutdown simplify simulate skip sleep slice"
    " snapshot solve spawn specify split stage star start stash stop store subscribe substitute subtract suggest"
    " sum summarise summarize supply suspend swap switch synchronize synthesize tail take talk tap tell terminate"
    " think throttle toggle tokenize touch train transcribe traverse trigger trim truncate try tune turn unarchive"
    " unassign unblock undo unfold unfollow uninstall unlock unmount unpack unregister unset unsubscribe unzip"
    " upgrade upsert use validate verify vote wait wake walk warn wipe wrap yield zip zoom"
)
"""What tools do. A verb that is missing is told from a noun by its form, and by what follows."""
