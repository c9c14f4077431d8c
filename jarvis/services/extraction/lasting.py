"""Whether a statement is worth keeping, and as what.

Grammar settles much of it: "lives in …", "is allergic to …" last; "just woke up", "needs a
synonym" do not. ``judge`` answers with yes, no, or that it does not know; then the model is
asked. Every rule names a frame of the language, never a topic. A fact is always in the third
person here (see ``clauses``).
"""

from __future__ import annotations

# ruff: noqa: E501 -- the tables of patterns read best unbroken
import re
from dataclasses import dataclass
from enum import Enum
from functools import cache

from jarvis.types import MemoryType


class Verdict(Enum):
    """What the rules say about a statement."""

    YES = "yes"
    NO = "no"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the kind of fact. ``importance`` is between 0 and 1."""

    verdict: Verdict
    type: MemoryType
    category: str
    importance: float


_NOUNLIKE = r"(?:[\w'’+#./-]+ ){0,3}?"
_KIN = (
    r"(?:mother|mom|mum|father|dad|parents?|brothers?|sisters?|siblings?|sons?|daughters?|child|"
    r"children|kids?|baby|twins|triplets|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|"
    r"uncles?|aunts?|cousins?|nephews?|nieces?|grand\w+|step\w+|family|sis|boys|girls)"
)
_PET = r"(?:dogs?|cats?|pupp\w+|kittens?|horses?|birds?|parrots?|rabbits?|hamsters?|turtles?|pets?)"
_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_ADVERB = (
    r"(?:(?:never|always|usually|often|sometimes|rarely|still|only|generally|both|all|so|very) )*"
)

# Statements that hold for the moment, speak about this talk, or ask for something.
_NO = (
    r"\byour?s?\b|\byourself\b",
    r"\b(?:right now|at the moment|for now|in a (?:minute|bit|second|moment)|for a second|just now|"
    r"by noon|tonight|this (?:morning|evening|afternoon)|today|a moment ago|brb)\b",
    r"\bthis (?!year|month|summer|winter|spring|autumn|fall|city|town|country)\w+\b|"
    r"\b(?:as|like) before\b|\b(?:first|second|last|next) (?:one|part|half|line|step|answer|try)\b",
    r"^user (?:is|was|feels?|felt|am) (?:(?:so|very|pretty|really|quite|a bit|a little|not|still|"
    r"feeling|too|all|just|getting|also|more) )*(?:(?:in|out|back|here|there|home|up|down|done|on it)(?=$|,| again| with (?:it|this))|good|fine|ok|okay|great|well|sorry|sure|ready|busy|hungry|thirsty|tired|sleepy|bored|happy|glad|sad|excited|"
    r"proud|curious|confused|lost|stuck|kidding|joking|afk|sick|ill|hot|cold|late|early|wrong|right|"
    r"serious|surprised|impressed|convinced|certain|afraid not|able|unable|better|worse|alone|fit|"
    r"woozy|angry|mad|upset|worried|interested|amazed|grateful|thankful|free|full|drunk|awake|"
    r"on (?:my|their) way|different|like|supposed|going to bed|about to|with you|from here|over it)\b"
    r"(?! (?:from|in .* for|at \w+ing|about my))",
    r"^user (?:is|was) (?:on|at|in) (?:line|page|step|chapter|large|small|it|the (?:phone|line|bus|"
    r"train|toilet|meeting|middle|process))\b",
    r"^user (?:is|was) (?:just )?(?:sitting|standing|waiting|wondering|looking at|looking for|asking|"
    r"trying(?! to (?:quit|lose|learn|stop|become|get pregnant|eat|cut|save))|checking|running the|testing|getting|having|seeing|thinking|talking|eating|drinking|"
    r"cooking|lying|chilling|relaxing|hanging|heading|leaving|coming back|typing|reading (?:it|this|"
    r"that|the)|enjoying|watching (?:it|this|that|the)|hoping|referring|assuming|guessing|using the)\b",
    r"^user (?:" + _ADVERB + r")(?:thinks?|thought|guess(?:es)?|means?|meant|supposes?|wonders?|"
    r"assumes?|knows?|knew|sees?|saw|notices?|noticed|asks?|asked|says?|said|agrees?|agreed|doubts?|"
    r"hopes?(?! to (?!hear|see|get|know|talk))|hoped|wish(?:es)?|wished|forgot|remembers?|understands?|understood|believes? (?:that|"
    r"it|you)|expects?|feels? (?:like|that|you)|hears?|heard|gets? it|got it|looks?|sounds?|"
    r"bets?|promises?|swears?|admits?|confess(?:es)?|insists?|refuses?|disagrees?|imagines?|presumes?|suspects?|trusts?|owes?|"
    r"accepts?|picks?|chooses?|gives? up|gets? (?:an?|the|this|that|no|some|nothing|\w+ (?:error|result|message)s?)|"
    r"gives? (?:it|up|in)|calls? (?:it|that|this)|feels?|smells?|requires?|requests?|demands?|begs?|prays? that|"
    r"looks? (?:at|for|forward)|looks|seems?|takes? (?:it|that|this|the)|tak(?:es|e) (?:a|your) (?:look|break)|stands? by|"
    r"votes? for (?:option|the|number)|goes? with|leaves? (?:it|that)|keeps? (?:getting|seeing|having|forgetting|hearing)|"
    r"misread|mistyped|misunderst\w+|apologi[sz]es?|appreciates?|recommends?|suggests?|mentioned|told|"
    r"tells?|interrupted|pasted|pastes?|sent|sends?|copied|tried|tries|restarted|rebooted|clicked|"
    r"opened|closed|checked|checks|ran|deleted|typed|compiled|reinstalled|ordered|finds? it|happened|"
    r"woke|slept|ate|drank|finished|left|walked|watched|listened|visited|went|came back|arrived|"
    r"called|texted|emailed|answered|replied|fixed|changed the|picked|chose|updated|installed|printed)\b"
    r"(?! (?:from (?:school|college|university)|in (?:love|touch)|(?:my|their) (?:job|wife|husband)"
    r"|to (?:school|college|university)|.*\b(?:\d{4}|years? ago|last (?:year|month)|as a (?:child|kid"
    r"|teenager))\b|how to (?!\w+ (?:it|this|that)\b)|.* since\b))",
    r"^user (?:does not|did not|can not|could not|will not|would not) (?:know|think|see|find|get|mean|"
    r"remember|understand|believe|wait|care if|mind|need|hear|say|want (?:it|this|that|to (?:talk|say|"
    r"hear|see|know))|open|reproduce|follow|tell|do|have (?:time|any (?:idea|questions?)|an? (?:idea|"
    r"clue))|afford|help|stop|agree|check|run)\b(?! german| french| music)",
    r"^user (?:needs?|will|would|could|should|shall|might|may|must|has to|have to|had to|got to|"
    r"has got to|can)\b(?! (?:be turning|like to (?:be|become|learn|travel|visit|live|work|move|own|"
    r"write|play|study|have kids)|love to (?:be|become|learn|travel|visit|live|work|move|own|write|"
    r"play|study)|not (?:eat|drink|have|stand|swim|drive|cook|tolerate|digest|sing|dance|read|walk|"
    r"see|hear|ride|speak)\b|speak|play|swim|drive|cook|ride|sing|dance|juggle|take (?:\w+ ){0,3}"
    r"(?:pills?|insulin|medication|medicine)|use a|turn \d|(?:be|become) (?:a|an)\b|move|marry|retire|"
    r"graduate|start|run|travel|avoid|wear))",
    r"^user (?:wants?|would like) (?:(?:a|an|the|some|more|another|\d+|to) )?"
    r"(?:[\w-]+ )?(?:recipe|answer|summary|list|table|example|examples|synonyms?|translation|version|"
    r"explanation|help|info|information|advice|tips?|code|script|function|poem|joke|know|see|ask|say|"
    r"talk|hear|check|test|try it|try this)s?\b",
    r"^user (?:" + _ADVERB + r")(?:loves?|likes?|hates?|dislikes?|enjoys?|prefers?|enjoyed|loved|"
    r"liked|has|does|did|makes?|uses?|is|was|could|keeps?|gets?|got) (?:it|that|this|these|those|them|"
    r"what|how|some|the (?:idea|answer|way|one|first|second|other|last|red|blue|same|following|"
    r"above|output|result|look|sound|new one))\b",
    r"^user (?:has|have|had|got|has got) (?:(?:a|an|another|one|no|some|any|the|two|few|many|more|"
    r"quick|small|little|big|short|last|also|just) )*(?:questions?|problems?|issues?|ideas?|points?|"
    r"thoughts?|doubts?|feelings?|errors?|bugs?|minutes?|moment|time|headache|cold|look|guess|hunch|"
    r"clue|suggestion|request|tests?|meetings?|break|fun|lunch|dinner|breakfast|coffee|plan|file|"
    r"script|query|table|list|string|stack ?trace|crash|typo|to|it|extras|seen|tried|heard|one(?= of|$)|"
    r"those|not|done|read)\b",
    r"^user (?:has|have) been (?:there|here|trying|wondering|thinking|waiting|busy|looking|getting|"
    r"seeing|told|meaning)\b",
    r"^user's (?:\w+ )?name is (?:not|none|what|irrelevant|unimportant|secret|private|hard|difficult|easy|"
    r"long|short|spelled|spelt|pronounced|misspelled|on|in|missing|wrong)\b",
    r"^user's (?:bad|guess|question|point|screen|computer|terminal|code|script|server|test|tests|build|"
    r"browser|internet|connection|file|program|query|answer|mistake|turn|apologies|idea|fault|feeling|"
    r"first (?:question|thought)|next (?:question|step)|thoughts|hands?|head|head hurts|input|output|"
    r"function|error|message|last (?:question|message)|problem|issue)\b",
    r"^user'?s? .*\b(?:just|is coming|is calling|is here|is at the door|is ready|is broken|crashed|"
    r"says? (?:hi|hello)|said)\b",
    r"^user (?:goes|is going) (?:now|to bed|to sleep|home|there|with (?:that|the))\b|^user (?:is|was) "
    r"going to (?:try|check|look|ask|go|eat|sleep|see|do|take|make|get|be (?:back|right)|need|say)\b",
    r"^user .*\b(?:on|for|of|about|with) them$",
    r"^user (?:is|was|has been|goes|went|works?|lives?|stays?) there$",
    r"^user (?:does|did)(?:,| not$|$)|^user (?:has|is|was) not$",
    r"^user(?:'s)?(?: [\w']+){0,3} (?:is|are|has|does|do|was|were)(?: not)?$",
)

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_WHEN = (
    r"\b(?:tomorrow|the day after tomorrow|(?:next|this coming) (?:week(?:end)?|month|year|spring|summer|autumn|"
    r"fall|winter|\w+day|"
    + _MONTHS
    + r")|(?:on|by|before|until|from|since|after) (?:the )?(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"in (?:a couple of|an?|\d+|two|three|four|five|six|seven|eight|nine|ten) (?:day|week|month|year)s?|"
    r"(?:in|by|before|until|since|end of) (?:early |mid-?|late )?(?:"
    + _MONTHS
    + r")|\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:"
    + _MONTHS
    + r")|"
    r"(?:" + _MONTHS + r") \d{1,2}|(?:19|20)\d\d-\d\d-\d\d)\b"
)
"""A day, week or month that stays what it is when the talk is over."""

_T = MemoryType
# What is to happen on a date or again and again: kept although most of these verbs hold for the
# moment only ("has to", "is getting", "has a meeting").
_SCHEDULED: tuple[tuple[str, MemoryType, str, float], ...] = (
    (r"^user (?:needs? to|(?:has|have)(?: got)? to|must|should) \w+ .*" + _WHEN, _T.GOAL, "plans", 0.65),
    (r"^user (?:has|have|has got|got|is having) (?:an?|another|the|their|\d+|two|three) .*" + _WHEN, _T.EVENT, "dates", 0.65),
    (r"^user (?:is|will be|will) (?!(?:at|in|on|from|by)\b)\w+.*" + _WHEN, _T.EVENT, "dates", 0.65),
    (r"^user'?s (?:[\w'’-]+ ){1,5}(?:is|are|was|were|will be|died|starts?|ends?|leaves?|arrives?|expires?)\b.*" + _WHEN,
     _T.EVENT, "dates", 0.7),
    (r"^user (?:needs?|has|have|must) to .*\b(?:every|each|once an?|twice an?|times an?|daily|weekly)\b", _T.FACT, "habits", 0.65),
    (r"^user is on (?:call|duty|shift|parental leave|maternity leave|paternity leave|sick leave|sabbatical|an? (?:[\w-]+ )?diet)\b",
     _T.FACT, "work", 0.6),
)  # fmt: skip
_MOMENT = (
    r"\byour?s?\b|\byourself\b|\b(?:right now|at the moment|for now|just now|tonight|today|"
    r"this (?:morning|evening|afternoon)|again|back|question|problem|idea|feeling|look|errors?|bugs?|"
    r"crash|it|them|that|those|these|no time)\b|\bthis (?!"
    + _MONTHS
    + r"|coming|year|month|week|spring|summer|"
    r"autumn|fall|winter)|^user's (?:build|code|script|server|tests?|screen|computer|internet|connection|"
    r"file|program|query|output|function)\b"
)

# What lasts, most telling first: pattern, type, category, importance.
_YES: tuple[tuple[str, MemoryType, str, float], ...] = (
    (r"^user's (?:\w+ )?name is\b|^user (?:is called|is named|goes by)\b", _T.FACT, "name", 0.95),
    (r"^user (?:" + _ADVERB + r")(?:prefers?|likes?|hates?|dislikes?|does not like|wants?) (?:[\w-]+ ){0,4}(?:answers|replies|"
     r"responses|explanations|examples|bullet points|summaries)\b", _T.PREFERENCE, "style", 0.8),
    (r"\ballerg|\bintoleran|\bdiabet|\basthma|\bceliac|\bcoeliac|\bdiagnosed\b|\bcancer\b|\bblood "
     r"(?:type|pressure)\b|\bpregnant\b|\bdisab|\bwheelchair\b|\bdeaf\b|\bblind\b|\bdepression\b|"
     r"\bmedication\b|\binsulin\b|\bpills?\b", _T.FACT, "health", 0.9),
    (r"^user (?:can not|does not|never|no longer) (?:eats?|drinks?|digest|tolerate|haves?)\b|"
     r"^user (?:is|has been|became|went|was) (?:a |an )?(?:strict )?(?:vegan|vegetarian|pescatarian|"
     r"teetotal\w*)\b", _T.PREFERENCE, "food", 0.8),
    (r"^user (?:wants?|would like|would love|hopes?|plans?|intends?|aims?|dreams?|is (?:planning|hoping"
     r"|aiming|saving|training|studying|preparing|going to school)|is going|wishes) (?:(?:up )?to|of|on|"
     r"for|a|an) (?:be |become|learn|visit|travel|move|live|study|have|own|buy|get married|marry|"
     r"retire|start|run|write|open|build|play|work|go (?:to|back)|quit|stop|lose|publish|finish|"
     r"compete|sail|climb|adopt|volunteer|graduate|gamble|see|house|new|marathon|\w+ing\b|\w+)",
     _T.GOAL, "goal", 0.7),
    (r"^user's (?:\w+ )?(?:goal|dream|plan|ambition|aim|new year's resolution) is\b", _T.GOAL, "goal", 0.75),
    (r"^user wants? (?:a|an|\d+|two|three|many|more) (?:\w+ ){0,3}(?:family|kids?|children|dogs?|cats?|"
     r"house|home|degree|career|job)\b", _T.GOAL, "goal", 0.6),
    (r"^user (?:" + _ADVERB + r")(?:lives?|resides?|stays|is (?:living|based|residing)|has (?:lived|been "
     r"living))\b(?!.*\b(?:on coffee|for it)\b)|^user's (?:home|house|address|hometown|home town) is\b",
     _T.FACT, "home", 0.85),
    (r"^user (?:moved|is moving|relocated|emigrated|immigrated|settled)\b", _T.FACT, "home", 0.85),
    (r"^user (?:is|comes|came|hails|was)\b.*\b(?:from|born|raised)\b|^user grew up\b|^user was brought up\b|"
     r"^user's (?:family|roots|parents) (?:is|are|come|comes) (?:\w+ )?from\b", _T.FACT, "origin", 0.75),
    (r"^user is (?:\w+ )?\d{1,3}(?: years| of age|$|,| and)|^user (?:turns?|turned|is turning) \d|"
     r"^user's (?:age|birthday|date of birth) (?:is|falls)|^user was born\b", _T.FACT, "age", 0.8),
    (r"^user (?:" + _ADVERB + r")(?:works?|is working|is employed|earns|runs a|runs the|runs their own|"
     r"teach(?:es)?|is (?:teaching|employed)|has (?:worked|taught)|manages|freelances|serves|sells|"
     r"volunteers?|is volunteering|practi[cs]es (?:law|medicine))\b|^user's (?:job|profession|work|"
     r"occupation|employer|boss|company|business|career|shop|trade) (?:is|as|makes|sells)\b|"
     r"^user (?:is|was) (?:self-employed|unemployed|retired|out of work|between jobs)\b|"
     r"^user (?:no longer|used to) works?\b|^user does \w+ work\b", _T.FACT, "work", 0.8),
    (r"^user (?:" + _ADVERB + r")(?:studies|is studying|majors?|attends?|goes to (?:school|college|"
     r"university)|graduated|studied|majored|is enrolled|is homeschooled|dropped out|has (?:studied|a "
     r"(?:\w+ )?(?:degree|phd|master|bachelor|diploma)))\b|^user (?:got|has|did|holds|earned|finished) "
     r"(?:a|their|an) (?:\w+ )?(?:degree|phd|doctorate|masters?|bachelors?|diploma|mba)\b|^user is (?:in|"
     r"at) (?:\w+ )?(?:school|college|university|grade)\b", _T.FACT, "education", 0.75),
    (r"^user (?:is|was|has been|got|gets|is getting) (?:\w+ )?(?:married|single|divorced|widowed|engaged|"
     r"separated|dating|in a relationship)\b", _T.FACT, "family", 0.8),
    (r"^user (?:has|have|has got|got|is expecting|lost|adopted|only has|raised|raises) (?:a |an |their |no "
     r"|" + _NUMBER + r" )?(?:[\w-]+ ){0,2}" + _KIN + r"\b", _T.FACT, "family", 0.7),
    (r"^user's (?:\w+ ){0,2}" + _KIN + r" ", _T.FACT, "family", 0.6),
    (r"^user (?:has|have|has got|owns?|adopted|got|only has|keeps|rides?|walks) (?:a |an |the |their |no |"
     + _NUMBER + r" )?(?:[\w-]+ ){0,3}" + _PET + r"\b|^user's (?:\w+ )?" + _PET + r" ", _T.FACT, "pets", 0.65),
    (r"^user's (?:[\w-]+ )?favou?rites?\b", _T.PREFERENCE, "taste", 0.65),
    (r"^user (?:" + _ADVERB + r")(?:does not |do not |does |did not |used to )?(?:really |even |particularly )?"
     r"(?:likes?|loves?|enjoys?|adores?|prefers?|hates?|dislikes?|detests?|loathes?|despises?|fears?|"
     r"cares? (?:for|about)|misses|collects?|favors?|favours?)\b", _T.PREFERENCE, "taste", 0.6),
    (r"^user (?:can not|could not) stand\b|^user would rather\b(?! see| not see| have it)|^user (?:is|has always been|was) (?:" + _ADVERB
     + r")(?:really |also |not |more )*(?:into|fond of|keen on|crazy about|afraid of|scared of|terrified of|"
     r"obsessed with|passionate about|a (?:big |huge |massive )?fan of|addicted to|picky|closer to|focused on|"
     r"good at|great at|bad at|terrible at|interested in (?!it|this|that|the))\b",
     _T.PREFERENCE, "taste", 0.6),
    (r"^user (?:speaks?|is fluent|can speak|understands? (?:\w+)$|is learning|learns?|is taking (?:\w+ )?"
     r"lessons|learned|learnt|knows? how to|can (?:play|swim|drive|cook|sing|dance|ride|juggle)|can not "
     r"(?:swim|drive|cook|ride|sing|dance|read|hear|see))\b", _T.FACT, "skills", 0.65),
    (r"^user (?:" + _ADVERB + r")(?:plays?|paints?|draws?|writes?|knits?|sews?|bakes?|gardens?|hikes?|climbs?|"
     r"runs?|swims?|cycles?|dances?|sings?|surfs?|skis?|fish(?:es)?|hunts?|reads?|listens?|goes \w+ing|"
     r"does (?:yoga|karate|judo|\w+ing|a lot of \w+ing)|practi[cs]es|travels?|cooks?|builds?|brews?|plants?|grows?|"
     r"meditates?|works? out|exercises?|walks?|races?|sails?|spends|attends|drinks?|eats?|smokes?|"
     r"watch(?:es)?|wears?|jams|gets exercise|posts|votes?|prays?|believes? in|follows?|supports?|"
     r"belongs|helps out|gives back|bikes|trains|codes|programs|takes care of|raises|breeds|makes|"
     r"sleeps|gets up|wakes up at|commutes|takes the (?:bus|train|tram)|rides|goes to)\b(?! (?:it|that|this|"
     r"them|the (?:answer|script|tests?|server|output|code|docs?|log|file|one|page)|something|up with)\b)",
     _T.FACT, "habits", 0.55),
    (r"^user (?:owns?|drives?|bought|has bought|rents?|sold|got (?:a|an|their|my) (?:new|first)|uses? (?:a|an|"
     r"\w+ (?:as|for|on|every|at))|has (?:a|an|" + _NUMBER + r"|their own|no|short|long|"
     r"brown|blue|green|blond|black|red|curly|many|several))\b", _T.FACT, "belongings", 0.5),
    (r"^user (?:is|was) (?:\w+ )?(?:building|writing|developing|designing|making|creating|planning|organi[sz]ing|"
     r"renovating|restoring|working on|running a|starting|launching|training|preparing|researching|"
     r"translating|recording|composing|publishing|editing|coding|programming|porting|growing|raising|"
     r"saving|reading|practi[cs]ing|trying to (?:quit|lose|learn|stop|become|get pregnant))\b(?! (?:it|that|"
     r"this|them|the (?:tests?|server|script|build|answer))\b)", _T.CONTEXT, "projects", 0.65),
    (r"^user (?:lived|worked|served|studied|taught|trained|volunteered) (?:in|at|for|as|with|abroad|on|near|under)\b|"
     r"^user used to\b|^user (?:quit|gave up|stopped|started|began|joined|left (?:their|my)|retired|"
     r"lost their|won|founded|served|survived|got over|broke|had (?:a|an|their) (?:\w+ )?(?:surgery|operation"
     r"|stroke|baby|accident|heart)|got promoted|got fired|got (?:a|their) (?:new )?(?:job|cat|dog)|passed "
     r"(?:the|their) (?:\w+ )?(?:exam|bar|test)|ran (?:a|the|their) \w+|was attacked|was in|was (?:a|an)|"
     r"was (?:\w+ed))\b", _T.FACT, "life", 0.6),
    (r"^user has (?:been|played|had|known|owned|run|wanted|loved|hated|always)\b", _T.FACT, "life", 0.6),
    (r"^user (?:is|became|has become) (?:not )?(?:a|an|the|lead|head|chief|senior|junior|part of|in charge of|"
     r"president|captain|member)\b (?!(?:\w+ )?(?:bit|little|lot|while|way|moment|mess|same|only one|fan of (?:"
     r"it|this|that)|big help|genius|idiot|first|last|next|part)\b)\w+", _T.FACT, "self", 0.65),
    (r"^user (?:switched|converted|changed over|migrated) (?:\w+ )?(?:from [\w .+#-]+ )?to \w", _T.FACT, "belongings", 0.55),
    (r"^user's (?:[\w-]+ )?(?:budget|salary|rent|income|pension|mortgage)\b.* (?:is|are) .*\d", _T.FACT, "money", 0.6),
    (r"^user (?:can not|does not) (?:do|work|make) (?:\w+days|weekends|mornings|evenings|nights)\b", _T.PREFERENCE, "habits", 0.6),
    (r"^user is (?:christian|muslim|jewish|hindu|buddhist|catholic|atheist|agnostic|left-handed|"
     r"right-handed|colou?r-?blind|bald|tall|short|shy|gay|lesbian|bisexual|trans|nonbinary|bilingual|"
     r"an introvert|introverted|extroverted|homeschooled|\w+-born|half \w+)\b|^user is (?:\w+ )?(?:shy|tall)"
     r"\b|^user is [\d.,]+ ?(?:cm|m|ft|feet|kg|pounds|lbs)\b", _T.FACT, "self", 0.65),
    (r"^user's (?:\w+ ){1,3}(?:is|are) (?:on|in|due|at|scheduled|planned) (?:\w+ ){0,3}(?:january|february|"
     r"march|april|may|june|july|august|september|october|november|december|\d|monday|tuesday|wednesday|"
     r"thursday|friday|saturday|sunday|next)", _T.EVENT, "dates", 0.7),
    (r"^user'?s? .*\b(?:next (?:week|month|year|spring|summer|autumn|fall|winter|\w+day)|last (?:year|"
     r"month|summer|winter|spring|autumn|week)|years? ago|in (?:19|20)\d\d|since (?:19|20)\d\d|(?:on|in) "
     r"(?:january|february|march|april|may|june|july|august|september|october|november|december)|\d+(?:st|nd"
     r"|rd|th)? (?:of )?(?:january|february|march|april|may|june|july|august|september|october|november|"
     r"december))\b", _T.EVENT, "dates", 0.6),
    (r"^user's (?:[\w-]+ ){1,3}(?:has|have|comes?|speaks?|works?|lives?|plays?|likes?|loves?|hates?|owns?|runs?|is (?:a|an)) ", _T.FACT, "self", 0.5),
    (r"^user (?:" + _ADVERB + r")(?!is |has |does |was |will |would |can )[a-z]+s (?!(?:it|that|this|them|those|these|to|up|if|when|how|what|like|"
     r"no|so|too|sorry)\b)(?:[\w'’+#./-]+(?:,? |$)){1,}", _T.FACT, "habits", 0.5),
    (r"^user's (?:best friend|friend|dog|cat|horse|car|truck|bike|boat|garden|thesis|favou?rite|band|team|"
     r"wedding|anniversary|birthday|religion|hobb(?:y|ies)|hair|eyes|height|weight|shoe size|nationality|"
     r"mother tongue|native language|first language|native tongue|phone|laptop|computer|operating system|"
     r"editor|timezone|time zone|pronouns|nickname|middle name|surname|last name)\b", _T.FACT, "self", 0.6),
)  # fmt: skip


_NAMED = re.compile(r"User's (?:[\w-]+ ){1,3}(?:is|are) (?:called |named )?[^\W\d_a-z]\w+")
"""What bears a name: "User's coach is Lindiwe"."""


_PROPER = re.compile(r"User is (?:[^\W\d_a-z]\w+)(?: [^\W\d_a-z]\w+){0,2}")
"""A name, a nationality, a religion: "User is Dana", "User is Kurdish"."""


@cache
def _no() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in _NO))


@cache
def _yes() -> tuple[tuple[re.Pattern[str], MemoryType, str, float], ...]:
    return tuple((re.compile(p), kind, category, weight) for p, kind, category, weight in _YES)


@cache
def _scheduled() -> tuple[tuple[re.Pattern[str], MemoryType, str, float], ...]:
    return tuple(
        (re.compile(p), kind, category, weight) for p, kind, category, weight in _SCHEDULED
    )


def judge(fact: str, *, presupposed: bool = False) -> Judgement:
    """What the rules say of ``fact`` ("User …" or "User's …")."""
    text = fact.casefold()
    found = next((entry[1:] for entry in _yes() if entry[0].search(text)), None)
    dated = next((entry[1:] for entry in _scheduled() if entry[0].search(text)), None)
    if dated is not None and not presupposed and not re.search(_MOMENT, text):
        if found is None or found[0] in {MemoryType.FACT, MemoryType.EVENT}:
            found = dated
        return Judgement(Verdict.YES, *found)
    if found is None and _NAMED.match(fact):
        found = (MemoryType.FACT, "people", 0.65)
    if found is None and _PROPER.fullmatch(fact):
        found = (MemoryType.FACT, "self", 0.85)
    refused = _no().search(text) is not None and not presupposed
    if found is None:
        verdict = Verdict.NO if refused else Verdict.ASK
        return Judgement(verdict, MemoryType.FACT, "", 0.4)
    kind, category, importance = found
    if presupposed:
        return Judgement(Verdict.YES, kind, category, min(importance, 0.5))
    return Judgement(Verdict.NO if refused else Verdict.YES, kind, category, importance)
